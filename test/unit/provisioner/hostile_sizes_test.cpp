// SPDX-License-Identifier: Apache-2.0
// Objects as large as an API server lets them be, and larger. A cost that grew faster than the size
// would show as the time limit of the whole program.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "fakes/builders.h"
#include "k8s/json_reader.h"
#include "provisioner/patterns.h"
#include "provisioner/plan.h"
#include "scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

// An API server takes 256 KiB of annotations.
constexpr std::size_t kMegabyte = std::size_t{1} << 20U;

/// However large it is.
k8s::PersistentVolumeClaim whole(const ClaimBuilder& with) {
  return k8s::decode<k8s::PersistentVolumeClaim>(with.json()).value();
}

std::string refusal(const ClaimBuilder& with, const StorageClassBuilder& storage_class) {
  const auto result = render_patterns(whole(with), storage_class.build(), "pvc-1");
  REQUIRE(std::holds_alternative<Refusal>(result));
  return std::get<Refusal>(result).message;
}

}  // namespace

TEST_CASE(
    "a claim with the largest annotations that an API server takes costs no more than itself") {
  const auto huge = claim("data").node("n1").annotation("a", std::string(kMegabyte, 'x'));
  const auto read = k8s::read_json(huge.json().dump());
  const auto decoded = k8s::decode<k8s::PersistentVolumeClaim>(read);
  REQUIRE(decoded.ok());
  CHECK(decoded->meta.annotations.at("a").size() == kMegabyte);
  for (const char* pattern :
       {R"({{ index .PVC.Annotations "a" }})", R"({{ printf "%q" (index .PVC.Annotations "a") }})",
        R"({{ range .PVC.Annotations }}{{ . }}{{ . }}{{ end }})", R"({{ .PVC.Annotations }})",
        R"({{ urlquery (index .PVC.Annotations "a") | html | js }})"}) {
    CAPTURE(pattern);
    CHECK(refusal(huge, storage_class().parameter("pathPattern", pattern)).size() < 2'000);
  }
  const std::string owner = R"({{ index .PVC.Annotations "a" }})";
  CHECK(refusal(huge, storage_class().parameter("userPattern", owner)).size() < 2'000);
  // A pattern that does not look at it is served.
  CHECK(std::holds_alternative<Rendered>(
      render_patterns(whole(huge), storage_class().build(), "pvc-1")));
}

TEST_CASE("a hundred thousand labels, and a name of any length, are a claim like any other") {
  ClaimBuilder many = claim("data");
  for (int i = 0; i < 100'000; ++i) many.label("l" + std::to_string(i), "v");
  const auto rendered = render_patterns(
      whole(many),
      storage_class()
          .parameter("pathPattern",
                     R"({{ .PVC.Namespace }}/{{ .PVC.Name }}/{{ index .PVC.Labels "l99999" }})")
          .build(),
      "pvc-1");
  REQUIRE(std::holds_alternative<Rendered>(rendered));
  CHECK(std::get<Rendered>(rendered).folder == "default/data/v");

  Scene scene;
  const auto long_name = claim(std::string(100'000, 'n')).node("n1").build();
  const auto planned = make_operation(long_name, storage_class().build(),
                                      scene.nodes.get({"", "n1"}).get(), *scene.config.current());
  REQUIRE(std::holds_alternative<Refusal>(planned));
  CHECK(std::get<Refusal>(planned).message.size() < 2'000);
}

TEST_CASE("sizes at and beyond the limits of integers are refused or exact") {
  Scene scene;
  const auto plan = [&](const char* size) {
    auto object = claim("data").node("n1").build();
    object.storage_request = size;
    return make_operation(object, storage_class().build(), scene.nodes.get({"", "n1"}).get(),
                          *scene.config.current());
  };
  for (const char* size : {"0", "-1", "-9223372036854775808", "9223372036854775808", "8Ei", "1e400",
                           "99999999999999999999999999999999", "", "NaN", "0x10", "1e"}) {
    CAPTURE(size);
    CHECK(std::holds_alternative<Refusal>(plan(size)));
  }
  const auto largest = plan("9223372036854775807");
  REQUIRE(std::holds_alternative<operation::Operation>(largest));
  CHECK(std::get<operation::Operation>(largest).size_bytes == 9'223'372'036'854'775'807);
}
