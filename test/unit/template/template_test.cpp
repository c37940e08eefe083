// SPDX-License-Identifier: Apache-2.0
#include "template/template.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/strings.h"
#include "config/path_template.h"
#include "places/places.h"

namespace lpp::gotemplate {
namespace {

using config::PathTemplate;
using nlohmann::json;

/// The claims of the generator in test/data/gotemplate/main.go.
k8s::ObjectMeta claim(const std::string& name) {
  k8s::ObjectMeta meta;
  meta.creation_timestamp = "2026-05-28T20:26:40Z";
  if (name == "bare") {
    meta.name = "a";
    meta.ns = "b";
    meta.uid = "u";
    return meta;
  }
  meta.name = "data-web-0";
  meta.generate_name = "data-";
  meta.ns = "team-a";
  meta.uid = "0b5d4f0c-1111-2222-3333-444455556666";
  meta.resource_version = "123";
  meta.generation = 7;
  meta.labels = {{"app", "web"},
                 {"tier", "front end"},
                 {"zone", "z1"},
                 {"example.com/zone", "z2"},
                 {"empty", ""}};
  meta.annotations = {{"path", "x/y"},
                      {"owner", "1000"},
                      {"quoted", "a\"b<c>&'d'=\\e\n"},
                      {"unicode", "ümlaut ☃"},
                      {"percent", "%d%%"},
                      {"empty", ""},
                      {"zero", "0"}};
  meta.owner_references = {
      {.api_version = "apps/v1", .kind = "StatefulSet", .name = "web", .uid = "5c1e"},
      {.api_version = "example.com/v1", .kind = "Backup", .name = "nightly", .uid = "77aa"}};
  meta.finalizers = {"kubernetes.io/pvc-protection", "b"};
  return meta;
}

Result<std::string> render(const std::string& pattern, const std::string& data = "full") {
  const auto parsed = PathTemplate::parse(pattern, "p");
  if (!parsed.ok()) return parsed.error();
  return parsed->render(data == "bare" ? "pvc-1" : "pvc-0b5d4f0c-1111-2222-3333-444455556666",
                        claim(data));
}

std::string error_of(const std::string& pattern) {
  const auto result = render(pattern);
  if (result.ok()) return "(rendered) " + *result;
  CHECK(result.error().is(ErrorCode::kInvalid));
  return result.error().message;
}

json cases() {
  std::ifstream file(lpp::testing::repository("test/data/gotemplate/cases.json"));
  REQUIRE(file.good());
  return json::parse(file);
}

TEST_CASE("patterns give what Go gives, byte for byte, or an error") {
  const json all = cases();
  CHECK(all.size() > 700);
  for (const json& c : all) {
    const std::string pattern = c["pattern"];
    CAPTURE(pattern);
    const auto result = render(pattern, c["data"]);
    if (c.value("refused", false) || c.contains("error")) {
      CHECK_MESSAGE(!result.ok(), (result.ok() ? *result : ""));
      if (!result.ok()) CHECK(result.error().is(ErrorCode::kInvalid));
      continue;
    }
    if (!result.ok()) {
      FAIL_CHECK(result.error().message);
    } else {
      CHECK(*result == c["output"].get<std::string>());
    }
  }
}

/// "p:line:column: text" of Go's place ("line" or "line:column", column from 0) and text.
bool says_the_same(const std::string& message, const std::string& place, const std::string& text) {
  const auto colon = place.find(':');
  std::string start = "p:" + place.substr(0, colon) + ":";
  if (colon != std::string::npos) start += std::to_string(std::stoi(place.substr(colon + 1)) + 1);
  return message.rfind(start, 0) == 0 && message.size() >= text.size() &&
         message.compare(message.size() - text.size(), text.size(), text) == 0;
}

TEST_CASE("errors say what Go says, and point to the place") {
  int different = 0;
  int all = 0;
  for (const json& c : cases()) {
    if (!c.contains("error")) continue;
    const std::string pattern = c["pattern"];
    const auto result = render(pattern, c["data"]);
    REQUIRE_FALSE(result.ok());
    ++all;
    if (says_the_same(result.error().message, c["place"], c["error"])) continue;
    ++different;
    MESSAGE(pattern, "\n  Go:   ", c["place"].get<std::string>(), ": ",
            c["error"].get<std::string>(), "\n  ours: ", result.error().message);
  }
  CHECK(all > 250);
  CHECK(different == 0);
}

TEST_CASE("error messages name the pattern, line and column") {
  CHECK(error_of("a/{{trim .PVC.Name}}") == "p:1:5: function \"trim\" not defined");
  CHECK(error_of("a\n/{{.PVC.Labels.x}}") ==
        "p:2:8: at <.PVC.Labels.x>: map has no entry for key \"x\"");
  CHECK(error_of("{{template \"x\"}}") == "p:1:3: {{template}} is not supported in patterns");
}

TEST_CASE("a format that makes no name is refused before there is a claim, by its verb") {
  const auto refused = [](const std::string& pattern) {
    const auto parsed = PathTemplate::parse(pattern, "p");
    return parsed.ok() ? std::string() : parsed.error().message;
  };
  const std::string only =
      " is not supported in patterns, only %s %v %d %q %x %t %c and %% with flags (no %#v), width, "
      "precision and [n] before the verb";
  CHECK(refused("a/{{printf \"%s-%.2f\" .PVName 1}}") == "p:1:12: printf: \"%.2f\"" + only);
  CHECK(refused("{{if (printf \"%T\" .)}}{{end}}") == "p:1:14: printf: \"%T\"" + only);
  CHECK(refused("{{printf \"%*d\" 3 4}}") == "p:1:10: printf: \"%*\"" + only);
  CHECK(refused("{{printf \"%#v\" 1}}") == "p:1:10: printf: \"%#v\"" + only);
  CHECK(refused("{{printf \"\\xff%\\xff\"}}") == "p:1:10: printf: \"%\\xff\"" + only);
  CHECK(refused("{{printf \"a%-5\"}}") == "p:1:10: printf: \"%-5\" has no verb");
  CHECK(refused("{{printf \"%70000s\"}}") == "p:1:10: printf: a number in the format is too large");
  CHECK(refused("{{1.5}}") ==
        "p:1:3: numbers with a fraction or an exponent are not supported in patterns: 1.5");
  CHECK(refused("{{printf \"%d\" .PVName}}") == "");
}

TEST_CASE("printf refuses values that its verbs do not print, and one without the other") {
  const auto says = [](const std::string& call, const std::string& why) {
    CHECK(error_of("{{" + call + "}}") == "p:1:3: at <" + call + ">: error calling printf: " + why);
  };
  says("printf \"%d\" .PVName", "%d does not print a value of type string");
  says("printf \"%s\" 1", "%s does not print a value of type int");
  says("printf \"%d\" .PVC.Labels", "%d does not print a value of type map[string]string");
  says("printf \"%d\" .PVC.CreationTimestamp", "%d does not print a value of type v1.Time");
  says("printf \"%s%s\" .PVName", "there is no value for %s");
  says("printf \"%5[3]s\" .PVName", "there is no value for %5[3]s");
  says("printf \"%s\" .PVName 1", "there is no verb for value 2");
}

TEST_CASE("what cannot end well ends soon") {
  const auto quick = [](const std::string& pattern) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string message = error_of(pattern);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    CHECK_MESSAGE(message.rfind("(rendered)", 0) != 0, message.substr(0, 100));
    CHECK(message.size() < 100'000);
  };
  quick("{{range 1000000000}}{{end}}");
  quick("{{range 1000000000}}x{{end}}");
  quick("{{range 1000}}" + std::string(100, 'x') + "{{end}}");  // few steps, and a long text
  quick("{{range 1000}}{{range 1000}}{{range 1000}}{{end}}{{end}}{{end}}");
  quick("{{$x := \"aaaaaaaaaaaaaaaa\"}}{{range 100}}{{$x = print $x $x}}{{end}}");
  quick("{{printf \"%100000d\" 1}}");
  quick("{{printf \"%.100000d\" 1}}");
  quick("{{printf \"%.100000f\" 1.5}}");
  quick("{{printf \"%1000000s\" \"\"}}");
  quick(std::string(70'000, 'x'));
  quick("{{" + std::string(30'000, '('));
  quick("{{" + std::string(30'000, '(') + "1" + std::string(30'000, ')') + "}}");
  std::string nested;
  for (int i = 0; i < 5'000; ++i) nested += "{{if 1}}";
  quick(nested);
  std::string chain;
  for (int i = 0; i < 3'000; ++i) chain += i == 0 ? "{{if 0}}" : "{{else if 0}}";
  quick(chain);
}

TEST_CASE("a text without actions is itself, however strange") {
  for (const char* text : {"", "}}", "{", "\xff\xfe", "a{ {b} }c", "\n\t "}) {
    CHECK(*render(text) == text);
  }
}

TEST_CASE("every prefix and every changed byte of a pattern is handled") {
  for (
      const std::string text :
      {"{{- $x := 1 -}} {{range $k, $v := .PVC.Labels}}{{if eq $k \"app\"}}{{printf \"%-5s|%[1]q\" "
       "$v}}{{else if $x}}{{break}}{{end}}{{end}}",
       "{{with (index .PVC.Annotations \"p\") | or `x`}}{{slice . 0 1 | len}}{{/* c */}}{{end}}"}) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      (void)render(text.substr(0, i));
      for (const char c : {'\0', '"', '{', '}', '(',  ')', '\\', '\xff', ',', '9', '.',
                           '$',  '|', ' ', '-', '\'', '`', '%',  '*',    '[', ':', '='}) {
        std::string changed = text;
        changed[i] = c;
        const auto result = render(changed);
        if (!result.ok()) CHECK(result.error().message.rfind("p:", 0) == 0);
      }
    }
  }
}

TEST_CASE("a parsed pattern can be rendered for one claim after another") {
  const auto parsed = PathTemplate::parse("{{.PVC.Namespace}}/{{.PVName}}", "pathPattern");
  REQUIRE(parsed.ok());
  const PathTemplate copy = *parsed;
  CHECK(*copy.render("v1", claim("full")) == "team-a/v1");
  CHECK(*copy.render("v2", claim("bare")) == "b/v2");
  CHECK(*parsed->render("v1", claim("full")) == "team-a/v1");
}

}  // namespace
}  // namespace lpp::gotemplate
