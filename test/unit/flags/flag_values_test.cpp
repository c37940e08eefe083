// SPDX-License-Identifier: Apache-2.0
#include "flags/flag_values.h"

#include <doctest/doctest.h>

#include <string>

using namespace lpp::flags;
using namespace std::chrono_literals;

TEST_CASE("integers are read as Go's flag package reads them") {
  struct Case {
    std::string_view text;
    std::optional<std::int64_t> value;
  };
  const Case cases[] = {
      {"0", 0},
      {"8080", 8080},
      {"+7", 7},
      {"-7", -7},
      {"0x1F", 31},
      {"0XfF", 255},
      {"0b101", 5},
      {"0o17", 15},
      {"017", 15},
      {"1_000", 1000},
      {"0x_ff", 255},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
      {"9223372036854775808", std::nullopt},
      {"-9223372036854775809", std::nullopt},
      {"99999999999999999999999999", std::nullopt},
      {"", std::nullopt},
      {"-", std::nullopt},
      {"0x", std::nullopt},
      {"08", std::nullopt},
      {"1__0", std::nullopt},
      {"_1", std::nullopt},
      {"1_", std::nullopt},
      {"+-1", std::nullopt},
      {" 1", std::nullopt},
      {"1 ", std::nullopt},
      {"1.0", std::nullopt},
      {"1e3", std::nullopt},
      {"abc", std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_go_int(c.text) == c.value);
  }
}

TEST_CASE("booleans are Go's twelve words and nothing else") {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    CHECK(parse_go_bool(yes) == true);
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    CHECK(parse_go_bool(no) == false);
  }
  for (const std::string_view other : {"", "yes", "no", "on", "tRUE", "2", " true", "true "}) {
    CAPTURE(other);
    CHECK_FALSE(parse_go_bool(other).has_value());
  }
}

TEST_CASE("a number is finite and takes up the whole text") {
  CHECK(parse_go_float("5") == 5.0);
  CHECK(parse_go_float("-0.5") == -0.5);
  CHECK(parse_go_float("+.5") == 0.5);
  CHECK(parse_go_float("1e3") == 1000.0);
  for (const std::string_view bad : {"", "-", "inf", "nan", "1e999", "5x", " 5", "--5", "0x1p2"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_go_float(bad).has_value());
  }
}

TEST_CASE("durations are read as Go's time.ParseDuration reads them") {
  struct Case {
    std::string_view text;
    std::optional<std::chrono::nanoseconds> value;
  };
  const Case cases[] = {
      {"0", 0ns},
      {"15s", 15s},
      {"1m30s", 90s},
      {"1h0m1s", 3601s},
      {"1.5h", 90min},
      {".5s", 500ms},
      {"2.s", 2s},
      {"-2ms", -2ms},
      {"+3us", 3us},
      {"4µs", 4us},
      {"4μs", 4us},
      {"7ns", 7ns},
      {"2562047h", 2562047h},
      {"2562048h", std::nullopt},
      {"", std::nullopt},
      {"-", std::nullopt},
      {"15", std::nullopt},
      {"s", std::nullopt},
      {".s", std::nullopt},
      {"1.2.3s", std::nullopt},
      {"1d", std::nullopt},
      {"1s ", std::nullopt},
      {"1 s", std::nullopt},
      {"1s-1s", std::nullopt},
      {"1e3s", std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_go_duration(c.text) == c.value);
  }
}

TEST_CASE("names of provisioners are judged as the API server judges them") {
  for (const std::string_view good :
       {"rancher.io/local-path", "cluster.local/My_Release.1", "local"}) {
    CAPTURE(good);
    CHECK(is_provisioner_name(good));
  }
  for (const std::string_view bad :
       {"", "/", "a/", "/a", "a/b/c", "a b", "rancher.io/-x", "under_score/x"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_provisioner_name(bad));
  }
}
