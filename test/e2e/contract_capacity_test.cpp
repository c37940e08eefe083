// SPDX-License-Identifier: Apache-2.0
// Contract: what tells the scheduler of free space.

#include "contract_case.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

json capacity(const ContractCase& c, const std::string& size = "1024Mi") {
  return {{"apiVersion", "storage.k8s.io/v1"},
          {"kind", "CSIStorageCapacity"},
          {"metadata", {{"namespace", c.ns}, {"name", "one"}}},
          {"nodeTopology", {{"matchLabels", {{"kubernetes.io/hostname", "n1"}}}}},
          {"storageClassName", "fast"},
          {"capacity", size},
          {"maximumVolumeSize", size}};
}

/// The message of what must be refused with 422.
template <typename T>
std::string refusal(const Result<T>& result) {
  if (result.ok()) return "it was accepted";
  return result.error().is(ErrorCode::kInvalid) ? result.error().message : "another error";
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("sizes of a capacity may change, its class and nodes may not") {
  ContractCase c;
  const json made = LPP_MUST(c.kube.create(capacity(c)));
  CHECK(made["capacity"] == "1Gi");
  CHECK(made["maximumVolumeSize"] == "1Gi");
  const auto merge = [&](const json& patch) {
    return c.kube.merge(k8s::kCsiStorageCapacities, c.key("one"), patch);
  };
  const json changed = LPP_MUST(merge({{"capacity", "104857600"}, {"maximumVolumeSize", "0"}}));
  CHECK(changed["capacity"] == "104857600");
  CHECK(changed["maximumVolumeSize"] == "0");
  CHECK(changed["nodeTopology"] == made["nodeTopology"]);
  json patch;
  patch["storageClassName"] = "slow";
  CHECK(says(refusal(merge(patch)), "field is immutable"));
  patch = json::object();
  patch["nodeTopology"]["matchLabels"]["kubernetes.io/hostname"] = "n2";
  CHECK(says(refusal(merge(patch)), "field is immutable"));
}

TEST_CASE("a capacity has a class and no size below nothing") {
  ContractCase c;
  CHECK(says(refusal(c.kube.create(capacity(c, "-1"))), "must be greater than or equal to 0"));
  json object = capacity(c);
  object["storageClassName"] = "";
  CHECK(says(refusal(c.kube.create(object)), "storageClassName"));
}

TEST_CASE("a driver that is only a name for the scheduler") {
  ContractCase c;
  json driver = {{"apiVersion", "storage.k8s.io/v1"},
                 {"kind", "CSIDriver"},
                 {"metadata", {{"name", c.ns}}},
                 {"spec", {{"storageCapacity", false}, {"attachRequired", false}}}};
  const json made = LPP_MUST(c.kube.create(driver));
  CHECK(made["spec"]["volumeLifecycleModes"] == json::array({"Persistent"}));
  CHECK(made["spec"]["podInfoOnMount"] == false);
  const auto merge = [&](const char* field, bool value) {
    json patch;
    patch["spec"][field] = value;
    return c.kube.merge(k8s::kCsiDrivers, {"", c.ns}, patch);
  };
  CHECK(LPP_MUST(merge("storageCapacity", true))["spec"]["storageCapacity"] == true);
  CHECK(says(refusal(merge("attachRequired", true)), "field is immutable"));
  LPP_MUST(c.kube.remove(k8s::kCsiDrivers, {"", c.ns}));
}

}  // namespace
}  // namespace lpp::testing
