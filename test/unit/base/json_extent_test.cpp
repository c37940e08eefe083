// SPDX-License-Identifier: Apache-2.0
#include "base/json_extent.h"

#include <doctest/doctest.h>

#include <string>

namespace lpp {
namespace {

std::size_t end_of(std::string_view text) { return first_json_value(text, 8).end; }

TEST_CASE("the first JSON value of a text ends with its last bracket") {
  CHECK(end_of(R"({"a": [1, 2]} rest)") == 13);
  CHECK(end_of("[[]]]") == 4);
  CHECK(end_of(R"({"a": "}\"}"})") == 13);  // brackets and quotes within a string are text
  CHECK(end_of(R"("text" )") == 7);         // without brackets it is the whole text
  CHECK(end_of("") == 0);
}

TEST_CASE("a text that is not JSON gets some end, for a parser to find the error") {
  CHECK(end_of("}{") == 1);
  CHECK(end_of("{") == 1);
  CHECK(end_of(R"({"a)") == 3);
  CHECK(end_of("{\"\\") == 3);  // it ends in the middle of an escape
}

TEST_CASE("brackets that are nested too deeply are found before a parser is let at them") {
  CHECK_FALSE(first_json_value("[[[]]]", 3).too_deep_at);
  CHECK(first_json_value("[[[[]]]]", 3).too_deep_at == 3);
  CHECK(first_json_value(R"({"a":{"b":{}}})", 2).too_deep_at == 10);
  CHECK_FALSE(first_json_value(R"({"[[[[[[": "{{{{{{"})", 1).too_deep_at);
  CHECK(first_json_value(std::string(1'000'000, '['), 64).too_deep_at == 64);
  // What follows the first value is nobody's to read.
  CHECK_FALSE(first_json_value("{}[[[[", 2).too_deep_at);
}

}  // namespace
}  // namespace lpp
