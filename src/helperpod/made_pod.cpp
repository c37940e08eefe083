// SPDX-License-Identifier: Apache-2.0
// What is read of helper pods that are there.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "helperpod/manifest.h"
#include "operation/record.h"

namespace lpp::helperpod {

using operation::Operation;

Result<Operation> operation_of(const k8s::Pod& pod) {
  const auto it = pod.meta.annotations.find(kOperationAnnotation);
  if (it == pod.meta.annotations.end()) {
    return invalid("pod " + pod.meta.key().to_string() + " has no annotation " +
                   kOperationAnnotation);
  }
  LPP_ASSIGN_OR_RETURN(Operation operation, operation::decode_operation(it->second),
                       "pod " + pod.meta.key().to_string());
  return operation;
}

bool puts_back(const k8s::Pod& pod) {
  return pod.meta.annotations.find(kPutsBackAnnotation) != pod.meta.annotations.end();
}

bool is_of_former_program(const nlohmann::json& pod) {
  const auto labels = pod["metadata"].value("labels", nlohmann::json::object());
  if (labels.contains(kProvisionerLabel)) return false;
  const nlohmann::json none = nlohmann::json::array();
  const nlohmann::json spec = pod.value("spec", nlohmann::json::object());
  const auto& volumes = spec.value("volumes", none);
  const bool has_data = std::any_of(volumes.begin(), volumes.end(), [](const auto& volume) {
    return volume.value("name", "") == "data" && volume.contains("hostPath");
  });
  const auto& containers = spec.value("containers", none);
  if (!has_data || containers.empty()) return false;
  const auto& args = containers[0].value("args", none);
  return args.size() >= 2 && args[0] == "-p";
}

}  // namespace lpp::helperpod
