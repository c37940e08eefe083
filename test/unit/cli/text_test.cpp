// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "text/yaml_to_json.h"

using namespace lpp::cli;
using namespace std::chrono_literals;

TEST_CASE("ages are shown as kubectl shows them") {
  CHECK(age_text(-5s) == "0s");
  CHECK(age_text(119s) == "119s");
  CHECK(age_text(120s) == "2m");
  CHECK(age_text(330s) == "5m30s");
  CHECK(age_text(100min) == "100m");
  CHECK(age_text(3h + 12min) == "3h12m");
  CHECK(age_text(47h) == "47h");
  CHECK(age_text(48h) == "2d");
  CHECK(age_text(51h) == "2d3h");
  CHECK(age_text(24h * 400) == "400d");
  CHECK(age_text(24h * 800) == "2y70d");
  CHECK(age_of("yesterday", {}) == "<unknown>");
}

TEST_CASE("a table has aligned columns and nothing behind the last one") {
  const std::string out =
      table({}, {"A", "LONGER", "C"}, {{{"1"}, {"2"}, {"3"}}, {{"wide-é"}, {"-"}, {"x y"}}});
  CHECK(out ==
        "A        LONGER   C\n"
        "1        2        3\n"
        "wide-é   -        x y\n");
}

TEST_CASE("on a terminal the last column is shortened, unless it is wanted whole") {
  const Terminal terminal{.width = 30};
  const std::string text = "éééé5678901234567890123456789";
  const std::vector<std::vector<Cell>> rows{{{"1"}, {text}}};
  CHECK(table(terminal, {"A", "B"}, rows) == "A   B\n1   éééé567890123456789012345…\n");
  CHECK(table(terminal, {"A", "B"}, rows, {.whole = true}).find(text) != std::string::npos);
}

TEST_CASE("a column that may lose its middle does so before the last one is cut to nothing") {
  const Terminal terminal{.width = 60};
  const std::string path = "/opt/local-path-provisioner/pvc-0123456789_default_dáta";
  const std::vector<std::vector<Cell>> rows{{{path}, {"Bound"}, {"a reason of some length"}}};
  CHECK(table(terminal, {"PATH", "PHASE", "WHY"}, rows, {.middle = 0}) ==
        "PATH                   PHASE   WHY\n"
        "/opt/loca…fault_dáta   Bound   a reason of some length\n");
  const std::string whole = table(terminal, {"PATH", "PHASE", "WHY"}, rows, {true, 0});
  CHECK(whole.find(path) != std::string::npos);
  CHECK(table({}, {"PATH", "PHASE", "WHY"}, rows, {.middle = 0}) == whole);
}

TEST_CASE("colours are there only where they are wanted") {
  CHECK(coloured({}, Colour::kRed, "x") == "x");
  CHECK(coloured({.colours = true}, Colour::kRed, "x") == "\x1b[31mx\x1b[0m");
  CHECK(coloured({.colours = true}, Colour::kNone, "x") == "x");
  // Colours do not count as columns.
  CHECK(table({.colours = true}, {"A", "B"}, {{{"1", Colour::kGreen}, {"2"}}}) ==
        "\x1b[1mA\x1b[0m   \x1b[1mB\x1b[0m\n\x1b[32m1\x1b[0m   2\n");
}

TEST_CASE("details are broken at the terminal's width, values below one another") {
  const std::vector<std::pair<std::string, Cell>> lines{
      {"Name", {"x"}}, {"Longer name", {"one two three four five six seven"}}, {"", {"more"}}};
  CHECK(details({}, lines) ==
        "Name:          x\n"
        "Longer name:   one two three four five six seven\n"
        "               more\n");
  CHECK(details({.width = 50}, lines) ==
        "Name:          x\n"
        "Longer name:   one two three four five six seven\n"
        "               more\n");
  CHECK(details({.width = 46}, lines) ==
        "Name:          x\n"
        "Longer name:   one two three four five six\n"
        "               seven\n"
        "               more\n");
}

TEST_CASE("counts agree with their nouns") {
  CHECK(counted(1, "node") == "1 node");
  CHECK(counted(0, "node") == "0 nodes");
  CHECK(counted(2, "StorageClass") == "2 StorageClasses");
}

TEST_CASE("text of others cannot move the cursor or break a table") {
  CHECK(one_line("a\nb\r\n\x1b[31mc\t\td\n") == "a b [31mc d");
}

TEST_CASE("YAML output is read back as the same value") {
  const nlohmann::json value{
      {"plain", "pvc-1_default/x.y"},
      {"looks like a bool", "yes"},
      {"looks like a number", "0x10"},
      {"time", "2026-05-28T20:26:40Z"},
      {"date", "2026-05-28"},
      {"dash", "-"},
      {"empty", ""},
      {"line", "a\nb: c # d"},
      {"number", 5},
      {"truth", false},
      {"nothing", nullptr},
      {"list", {1, {{"a", "b"}, {"c", {"d"}}}, nlohmann::json::array({"x"}), "y"}},
      {"no list", nlohmann::json::array()},
      {"no map", nlohmann::json::object()},
  };
  const auto read = lpp::text::yaml_to_json(to_yaml_text(value));
  REQUIRE(read.ok());
  CHECK(read->value == value);
  CHECK(to_yaml_text({{"a", {{{"b", 1}, {"c", 2}}}}}) == "a:\n  - b: 1\n    c: 2\n");
}

TEST_CASE("YAML output quotes each text that a reader of YAML 1.1 or 1.2 takes for another type") {
  for (const std::string text :
       {"y",    "No",    "on",   "OFF",        "true",     "null",
        "~",    "12",    "-3",   "+1",         "1_0",      "0x1F",
        "0o17", "017",   "08",   "0b1",        "1.5",      "1e3",
        ".5",   "1e999", ".inf", "-.Inf",      ".NaN",     "190:20:30",
        "=",    "<<",    "",     "2026-05-28", "2026-5-8", "2026-05-28T20:26:40Z"}) {
    CAPTURE(text);
    CHECK(to_yaml_text({{"k", text}}) == "k: \"" + text + "\"\n");
  }
  for (const std::string text : {"pvc-1_default/x.y", "node-1", "10.0.0.1", "1.2.3", "v1", "20Gi",
                                 "8f14e45f-ceea-467f-a0e6-31b1d2c0a1e2", "2026-05-28-backup"}) {
    CHECK(to_yaml_text({{"k", text}}) == "k: " + text + "\n");
  }
}

TEST_CASE("YAML output of any text, as a key too, is read back as the same text") {
  for (const std::string text : {"a: b",
                                 "a #b",
                                 "#a",
                                 "- a",
                                 "? a",
                                 "&a",
                                 "*a",
                                 "!a",
                                 "|",
                                 ">",
                                 "%a",
                                 "@a",
                                 "`a",
                                 "'a",
                                 "\"a",
                                 "{a",
                                 "[a",
                                 "a,",
                                 "---",
                                 "...",
                                 " a",
                                 "a ",
                                 "a\n",
                                 "\na",
                                 "a\tb",
                                 "a\rb",
                                 "\\",
                                 "\x01\x7f",
                                 "\xc2\x85",
                                 "\xe2\x80\xa8",
                                 "\xef\xbb\xbf",
                                 "\xf0\x9f\x90\x9d",
                                 "\xc3\xa4"}) {
    CAPTURE(text);
    const nlohmann::json value{{text, {text, {{"k", text}}}}};
    const auto read = lpp::text::yaml_to_json(to_yaml_text(value));
    REQUIRE(read.ok());
    CHECK(read->value == value);
  }
  CHECK(to_yaml_text({{"k", "\x01\x7f \xc3\xa4"}}) == "k: \"\\x01\\x7f \\xe4\"\n");
  CHECK(to_yaml_text({{"k", "\x01 \xc3\xa4"}}) == "k: \"\\x01 \xc3\xa4\"\n");
}
