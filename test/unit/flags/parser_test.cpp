// SPDX-License-Identifier: Apache-2.0
#include "flags/parser.h"

#include <doctest/doctest.h>

#include <array>

#include "flags/flag_reader.h"
#include "flags/spelling.h"

using namespace lpp::flags;

namespace {

constexpr std::array kFlags = {
    Flag{.name = "config", .short_name = 'f', .placeholder = "FILE"},
    Flag{.name = "output", .short_name = 'o', .placeholder = "FORMAT", .choices = "json|yaml"},
    Flag{.name = "all", .short_name = 'A', .fallback = "false"},
    Flag{.name = "debug", .short_name = 'd', .env = "LPP_DEBUG", .fallback = "false"},
};
constexpr std::array kGroups = {FlagGroup{"Flags", kFlags}};

using Words = std::vector<std::string>;

/// "output=json words: a b", or the error.
std::string parsed(const Words& arguments) {
  const auto given = parse_flags(arguments, kGroups);
  if (!given.ok()) return "error: " + given.error().message;
  std::string out;
  for (const auto& [name, values] : given->flags) {
    for (const std::string& value : values) {
      out.append(name).append("=").append(value).append(" ");
    }
  }
  for (const std::string& word : given->words) out.append("[").append(word).append("]");
  return out;
}

}  // namespace

TEST_CASE("a flag with a value is understood in each spelling of Go and of kubectl") {
  for (const Words& arguments :
       {Words{"--output", "json"}, Words{"--output=json"}, Words{"-output", "json"},
        Words{"-output=json"}, Words{"-o", "json"}, Words{"-ojson"}, Words{"-o=json"},
        Words{"--o", "json"}, Words{"--o=json"}}) {
    CAPTURE(arguments.front());
    CHECK(parsed(arguments) == "output=json ");
  }
}

TEST_CASE("short flags may be written as one, the last of them with its value") {
  CHECK(parsed({"-Ad"}) == "all=true debug=true ");
  CHECK(parsed({"-Aojson"}) == "all=true output=json ");
  CHECK(parsed({"-Ao=json"}) == "all=true output=json ");
  CHECK(parsed({"-Ao", "json", "x"}) == "all=true output=json [x]");
  CHECK(parsed({"-d=false"}) == "debug=false ");
  CHECK(parsed({"-f=/a-b.c"}) == "config=/a-b.c ");
  CHECK(parsed({"-f/a-b.c"}) == "config=/a-b.c ");
  CHECK(parsed({"-f="}) == "config= ");
}

TEST_CASE("a boolean flag leaves the next argument alone") {
  CHECK(parsed({"--debug", "false"}) == "debug=true [false]");
  CHECK(parsed({"--debug=false", "x"}) == "debug=false [x]");
  CHECK(parsed({"--debug=banana"}) == "debug=banana ");  // judged by who reads it
  CHECK(parsed({"--debug="}) == "debug= ");
}

TEST_CASE("a value is taken as it is: dashes, nothing, line breaks, commas, and very long") {
  CHECK(parsed({"--config", "--all"}) == "config=--all ");
  CHECK(parsed({"--config", "--"}) == "config=-- ");
  CHECK(parsed({"--config", "-ojson"}) == "config=-ojson ");
  CHECK(parsed({"--config", "", "x"}) == "config= [x]");
  CHECK(parsed({"--config=a=b"}) == "config=a=b ");
  CHECK(parsed({"--config", "{\n\"a\": [1, 2]\n}"}) == "config={\n\"a\": [1, 2]\n} ");
  const std::string text(1UL << 20, '\n');
  CHECK(parsed({"--config=" + text}) == "config=" + text + " ");
}

TEST_CASE("flags and words come in any order, repeated flags keep theirs, and -- ends the flags") {
  CHECK(parsed({"a", "--all", "b", "-", "-f", "1", "--config=2", "--", "-d", "--", "--none"}) ==
        "all=true config=1 config=2 [a][b][-][-d][--][--none]");
  CHECK(parsed({"-f1", "--config", "2,3", "-f=4"}) == "config=1 config=2,3 config=4 ");
  CHECK(parsed({}).empty());
}

TEST_CASE("what no flag is called is refused as it was written, with the nearest name") {
  CHECK(parsed({"--outptu=json"}) == "error: unknown flag --outptu; did you mean --output?");
  CHECK(parsed({"-debu"}) == "error: unknown flag -debu; did you mean --debug?");
  CHECK(parsed({"a", "-d", "-x", "--y"}) == "error: unknown flag -x");
  CHECK(parsed({"-Ax"}) == "error: unknown flag -Ax");
  for (const char* odd :
       {"--a.b", "---", "--=x", "-=", "--\n", "-\xc3\xa4", "--o utput", "-1", "--outpu\xff"}) {
    CAPTURE(odd);
    CHECK(parsed({odd}).starts_with("error: unknown flag -"));
  }
}

TEST_CASE("a value that is missing is said by the flag's name and what it wants") {
  for (const char* last : {"--config", "-config", "-f", "-Af"}) {
    CAPTURE(last);
    CHECK(parsed({"x", last}) == "error: --config needs a value: --config FILE");
  }
}

TEST_CASE("a flag goes before its variable, and that before the default") {
  const auto debug = [](const Words& arguments, std::optional<std::string> variable) {
    const auto given = parse_flags(arguments, kGroups);
    const GetEnv getenv = [&](const std::string& name) {
      return name == "LPP_DEBUG" ? variable : std::nullopt;
    };
    FlagReader reader(*given, getenv, kGroups);
    const bool value = reader.boolean("debug");
    return reader.error() ? reader.error()->message : std::string(value ? "on" : "off");
  };
  CHECK(debug({}, std::nullopt) == "off");
  CHECK(debug({}, "true") == "on");
  CHECK(debug({"-d=false"}, "true") == "off");
  CHECK(debug({"-d"}, "false") == "on");
  CHECK(debug({"-d", "--debug=0"}, std::nullopt) == "off");
  CHECK(debug({}, "banana") == "$LPP_DEBUG=banana: expected true or false");
  CHECK(debug({"--debug=banana"}, "true") == "--debug=banana: expected true or false");
}
