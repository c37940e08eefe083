// SPDX-License-Identifier: Apache-2.0
#include "k8s/quantity.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace lpp;
using namespace lpp::k8s;  // a test file

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

struct Row {
  std::string text;
  std::int64_t value;
  bool saturated = false;
};

}  // namespace

TEST_CASE("a quantity's value is its ceiling away from zero") {
  const std::vector<Row> rows = {
      // Suffixes of both families.
      {"0", 0},
      {"1n", 1},
      {"1u", 1},
      {"1m", 1},
      {"1", 1},
      {"1k", 1000},
      {"1M", 1'000'000},
      {"1G", 1'000'000'000},
      {"1T", 1'000'000'000'000},
      {"1P", 1'000'000'000'000'000},
      {"1E", 1'000'000'000'000'000'000},
      {"1Ki", 1024},
      {"1Mi", std::int64_t{1} << 20},
      {"1Gi", std::int64_t{1} << 30},
      {"1Ti", std::int64_t{1} << 40},
      {"1Pi", std::int64_t{1} << 50},
      {"1Ei", std::int64_t{1} << 60},
      // Exponents; a lone E is a suffix.
      {"1E3", 1000},
      {"1e3", 1000},
      {"1e+3", 1000},
      {"1E-3", 1},
      {"5e-1", 1},
      {"12e0", 12},
      {"1.5e3", 1500},
      {"0.0012e3", 2},
      // Accepted oddities.
      {"1.", 1},
      {".5", 1},
      {"+1", 1},
      {"01Gi", std::int64_t{1} << 30},
      {"-0", 0},
      {"000", 0},
      {"0.000", 0},
      {" 1Gi ", std::int64_t{1} << 30},
      {"\t7\n", 7},
      // Rounding.
      {"0.0000000001", 1},
      {"100m", 1},
      {"1000m", 1},
      {"1001m", 2},
      {"1.5", 2},
      {"0.1Ki", 103},
      {"1.1Ki", 1127},
      {"1.5Gi", 1610612736},
      {"0.5Mi", 524288},
      {"0.00000000000000000000000000000001Gi", 1},
      {"-100m", -1},
      {"-1.5", -2},
      {"-1.1Ki", -1127},
      {"-1Gi", -(std::int64_t{1} << 30)},
      {"1000000001", 1000000001},
      // The limits, and what lies beyond.
      {"9223372036854775807", kMax},
      {"9223372036854775806.1", kMax},
      {"9223372036854775807.1", kMax, true},
      {"9223372036854775808", kMax, true},
      {"-9223372036854775808", kMin},
      {"-9223372036854775808.5", kMin, true},
      {"18446744073709551616", kMax, true},
      {"9999999999999999999", kMax, true},
      {"99999999999999999999", kMax, true},
      {"9.3E", kMax, true},
      {"100E", kMax, true},
      {"7.999999999999999999999Ei", kMax, true},
      {"7Ei", std::int64_t{7} << 60},
      {"8Ei", kMax, true},
      {"16Ei", kMax, true},
      {"-8Ei", -kMax, true},
      {"-100E", kMin, true},
      {"1e1000", kMax, true},
      {"1e-1000", 1},
      {"-1e-1000", -1},
      {"0e1000", 0},
      {"0.000000000000000000001e21", 1},
      {"1000000000000000000000e-21", 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto quantity = Quantity::parse(row.text);
    REQUIRE(quantity.ok());
    CHECK(quantity->value() == row.value);
    CHECK(quantity->saturated() == row.saturated);
  }
}

TEST_CASE("what is no quantity is refused and quoted") {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "1K",
                                          "1gi",
                                          "5GB",
                                          "1 Gi",
                                          "1e",
                                          "1e1.5",
                                          "1.2.3",
                                          "--1",
                                          "1Zi",
                                          "abc",
                                          "Gi",
                                          "+",
                                          "-",
                                          ".",
                                          "-.",
                                          "e3",
                                          "1e+",
                                          "1e-",
                                          "1e+-1",
                                          "0x10",
                                          "1,5",
                                          "1ki",
                                          "1ei",
                                          "1Eii",
                                          "1mi",
                                          "1Gi x",
                                          "+-1",
                                          "1e3Ki",
                                          "１",
                                          "NaN",
                                          "1e1001",
                                          "1e-1001",
                                          "1e2147483648",
                                          "1e-2147483648",
                                          "1e99999999999999999999"};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const auto quantity = Quantity::parse(text);
    REQUIRE_FALSE(quantity.ok());
    CHECK(quantity.error().is(ErrorCode::kInvalid));
    CHECK(quantity.error().message.starts_with("not a quantity: "));
  }
  CHECK(Quantity::parse("1 Gi").error().message == "not a quantity: \"1 Gi\"");
}

TEST_CASE("a very long quantity is read in linear time and its error is short") {
  const std::string digits(1'000'000, '9');
  CHECK(Quantity::parse(digits)->saturated());
  CHECK(Quantity::parse("0." + digits)->value() == 1);
  CHECK(Quantity::parse(std::string(1'000'000, '0') + "5")->value() == 5);
  CHECK(Quantity::parse(digits + "x").error().message.size() < 100);
}
