// SPDX-License-Identifier: Apache-2.0
#include "provisioner/patterns.h"

#include <doctest/doctest.h>

#include "fakes/builders.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

std::variant<Rendered, Refusal> render(const StorageClassBuilder& storage_class,
                                       const ClaimBuilder& with = claim("data")) {
  return render_patterns(with.build(), storage_class.build(), "pvc-1");
}

std::string folder(const std::variant<Rendered, Refusal>& result) {
  const auto* refusal = std::get_if<Refusal>(&result);
  REQUIRE_MESSAGE(refusal == nullptr, (refusal == nullptr ? "" : refusal->message));
  return std::get<Rendered>(result).folder;
}

std::string refusal(const std::variant<Rendered, Refusal>& result) {
  REQUIRE(std::holds_alternative<Refusal>(result));
  return std::get<Refusal>(result).message;
}

}  // namespace

TEST_CASE("without a pattern the directory is volume, namespace and claim") {
  const auto result = render(storage_class());
  CHECK(folder(result) == "pvc-1_default_data");
  CHECK(std::get<Rendered>(result).user.empty());
  CHECK(std::get<Rendered>(result).perm.empty());
}

TEST_CASE("a path pattern names the folder below the claim's own") {
  const auto with = [](const char* pattern) {
    return render(storage_class().parameter("pathPattern", pattern),
                  claim("data").label("app", "web"));
  };
  CHECK(folder(with("{{.PVC.Namespace}}/{{.PVC.Name}}/{{.PVName}}")) == "default/data/pvc-1");
  CHECK(folder(with("{{.PVC.Namespace}}/{{.PVC.Name}}/")) == "default/data");
  CHECK(folder(with("{{.PVC.Namespace}}/{{.PVC.Name}}")) == "default/data");
  CHECK(folder(with("{{.PVC.Namespace}}/{{.PVC.Name}}/{{.PVC.Labels.app}}")) == "default/data/web");
}

TEST_CASE("a path pattern never leads out of the claim's own directory") {
  for (const char* pattern :
       {"{{.PVC.Namespace}}/{{.PVC.Name}}/..", "{{.PVC.Namespace}}/{{.PVC.Name}}/../..",
        "{{.PVC.Namespace}}/{{.PVC.Name}}/../../other", "{{.PVC.Namespace}}/{{.PVC.Name}}/./x",
        "{{.PVC.Namespace}}/{{.PVC.Name}}//x", "/{{.PVC.Namespace}}/{{.PVC.Name}}/x",
        "{{.PVC.Namespace}}/{{.PVC.Name}}/a\nb", "{{.PVC.Namespace}}/{{.PVC.Name}}x/y",
        "{{.PVC.Namespace}}/other", "other/{{.PVC.Name}}/x", "..", "."}) {
    CAPTURE(pattern);
    CHECK(refusal(render(storage_class().parameter("pathPattern", pattern)))
              .starts_with("pathPattern gives \""));
  }
  // What comes from the claim's author counts as little as what comes from the class's.
  CHECK(refusal(
            render(storage_class().parameter(
                       "pathPattern",
                       "{{.PVC.Namespace}}/{{.PVC.Name}}/{{ index .PVC.Annotations \"folder\" }}"),
                   claim("data").annotation("folder", "../../kube-system")))
            .find("..") != std::string::npos);
}

TEST_CASE("a class may opt out of the claim's own directory, but not out of the base path") {
  const auto with = [](const char* pattern, const char* value) {
    return render(storage_class()
                      .parameter("pathPattern", pattern)
                      .parameter("allowUnsafePathPattern", value));
  };
  CHECK(folder(with("shared/{{.PVC.Name}}", "true")) == "shared/data");
  CHECK(folder(with("/shared", "1")) == "shared");
  // As written in clusters that opted out: cleaned like a path, and never at or above the base.
  CHECK(folder(with("/opt/../{{.PVC.Namespace}}_{{.PVC.Name}}/../etc/", "true")) == "etc");
  CHECK(folder(with("a//b/./c/../d", "T")) == "a/b/d");
  for (const char* pattern : {"../x", "a/../../x", "..", ".", "/", "a/..", "/../x", "a/../.."}) {
    CAPTURE(pattern);
    CHECK(refusal(with(pattern, "true")).find("leads to or above the base path") !=
          std::string::npos);
  }
  for (const char* text : {"a\nb", "a\x7f", "\u0080", "a/b\u0085c", "\u009f"}) {
    CHECK(refusal(with(text, "true")).find("control character") != std::string::npos);
  }
  CHECK(folder(with("\u00a0\u0142\u2028", "true")) == "\u00a0\u0142\u2028");
  CHECK(refusal(with("shared", "yes")).find("must begin with") != std::string::npos);
  CHECK(folder(render(storage_class()
                          .parameter("pathPattern", "shared")
                          .annotation("allowUnsafePathPattern", "true"))) == "shared");
}

TEST_CASE("a missing label or a broken pattern is a refusal that points at the place") {
  CHECK(refusal(render(storage_class().parameter(
                    "pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}/{{.PVC.Labels.none}}")))
            .find("map has no entry for key") != std::string::npos);
  CHECK(refusal(render(storage_class().parameter("pathPattern", "{{ trim .PVName }}")))
            .find("function \"trim\" not defined") != std::string::npos);
  CHECK(refusal(render(storage_class().parameter("permPattern", "{{.PVC.Labels.none}}")))
            .find("permPattern") != std::string::npos);
}

TEST_CASE("a class with optional labels works for claims without them, in all four patterns") {
  const char* const optional = "{{if .PVC.Labels.none}}x{{else}}%{{end}}";
  const auto with = [&](const std::string& otherwise) {
    std::string pattern = optional;
    return pattern.replace(pattern.find('%'), 1, otherwise);
  };
  const auto result = render(
      storage_class()
          .parameter("pathPattern",
                     "{{.PVC.Namespace}}/{{.PVC.Name}}/{{or .PVC.Labels.none .PVC.Annotations.none "
                     "\"d\"}}")
          .parameter("userPattern", with("1000"))
          .parameter("groupPattern", "{{with .PVC.Annotations.none}}{{.}}{{else}}2000{{end}}")
          .parameter("permPattern", "{{if eq .PVC.Labels.none \"x\"}}0700{{else}}0750{{end}}"));
  CHECK(folder(result) == "default/data/d");
  CHECK(std::get<Rendered>(result).user == "1000");
  CHECK(std::get<Rendered>(result).group == "2000");
  CHECK(std::get<Rendered>(result).perm == "0750");
}

TEST_CASE("user, group and mode lose every blank around them that Unicode knows") {
  for (const char* blank : {"\t", "\v", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2029", "\u3000",
                            " \u00a0\n\u3000 "}) {
    const std::string around(blank);
    const auto result = render(storage_class()
                                   .parameter("userPattern", around + "1000" + around)
                                   .parameter("permPattern", around));
    CHECK(std::get<Rendered>(result).user == "1000");
    CHECK(std::get<Rendered>(result).perm.empty());
  }
  // These are no blanks.
  for (const char* other : {"\u200b1000", "1000\ufeff"}) {
    CHECK(refusal(render(storage_class().parameter("userPattern", other)))
              .find("userPattern gives") != std::string::npos);
  }
}

TEST_CASE("user, group and mode are taken from parameters or annotations, trimmed and checked") {
  const auto result = render(storage_class()
                                 .parameter("userPattern", " {{ index .PVC.Labels \"uid\" }} ")
                                 .annotation("groupPattern", "www-data")
                                 .parameter("permPattern", "0750"),
                             claim("data").label("uid", "1000"));
  CHECK(folder(result) == "pvc-1_default_data");
  CHECK(std::get<Rendered>(result).user == "1000");
  CHECK(std::get<Rendered>(result).group == "www-data");
  CHECK(std::get<Rendered>(result).perm == "0750");
  for (const char* good : {"0", "00", "0001000", "4294967294", "_apt", "www-data"}) {
    CAPTURE(good);
    CHECK(std::get<Rendered>(render(storage_class().parameter("userPattern", good))).user == good);
  }
  // IDs have 32 bits, and the last of them means "leave as it is".
  for (const char* bad : {"-R", "a b", "a;b", "1000:0", "$(id)", "4294967295", "4294967296",
                          "18446744073709551616", "99999999999", "1e3", "0x0", "ü"}) {
    CAPTURE(bad);
    CHECK(refusal(render(storage_class().parameter("userPattern", bad)))
              .starts_with("userPattern gives \""));
    CHECK(refusal(render(storage_class().parameter("groupPattern", bad)))
              .starts_with("groupPattern gives \""));
  }
  for (const char* bad : {"0888", "u+x", "-1", "17777", "0x1"}) {
    CAPTURE(bad);
    CHECK(refusal(render(storage_class().parameter("permPattern", bad)))
              .starts_with("permPattern gives \""));
  }
  CHECK(std::get<Rendered>(render(storage_class().parameter("permPattern", "02775"))).perm ==
        "02775");
}
