// SPDX-License-Identifier: Apache-2.0
#include "cli/explain_path.h"

#include "base/log.h"
#include "base/strings.h"
#include "provisioner/claim_shape.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/plan.h"
#include "provisioner/volume_rules.h"

namespace lpp::cli {

namespace {

using k8s::find;
using provisioner::Refusal;

/// Which entry of the configuration the paths come from, and what it holds.
void explain_entry(const k8s::PersistentVolumeClaim& claim, const config::Config& config,
                   const k8s::Node* node, PathAnswer& answer) {
  const std::string class_name = claim.class_name();
  const config::PathConfig* const paths = config.paths_for_class(class_name);
  if (paths == nullptr) {
    answer.steps.push_back({"config.json", "has no paths for this class"});
    return;
  }
  const bool own = config.classes.find(class_name) != config.classes.end();
  const std::string prefix = own ? fmt::format("storageClassConfigs[\"{}\"].", class_name) : "";
  if (paths->shared()) {
    answer.steps.push_back({"config.json", fmt::format("{}sharedFileSystemPath: {}", prefix,
                                                       paths->shared_file_system_path)});
    return;
  }
  if (node == nullptr) return;
  const auto entry = paths->node_path_map.find(node->meta.name);
  const bool listed = entry != paths->node_path_map.end();
  const auto* const bases = paths->paths_for(node->meta.name);
  std::string text = fmt::format("{}nodePathMap, ", prefix);
  if (bases == nullptr) {
    text +=
        fmt::format("which has no entry for {} and no {}", node->meta.name, config::kDefaultNode);
  } else {
    text +=
        listed ? "entry of node " + node->meta.name : fmt::format("entry {}", config::kDefaultNode);
    text += ":";
    for (const std::string& base : *bases) text += " " + base;
    if (bases->empty()) text += " no path";
  }
  answer.steps.push_back({"config.json", std::move(text)});
}

void explain_base(const k8s::PersistentVolumeClaim& claim, const k8s::StorageClass& storage_class,
                  const config::Config& config, const operation::Operation& operation,
                  PathAnswer& answer) {
  const config::PathConfig* const paths = config.paths_for_class(operation.storage_class);
  if (paths == nullptr || paths->shared()) return;
  const auto* const bases = paths->paths_for(operation.node);
  const std::string* const wanted = find(storage_class.parameters, provisioner::kNodePathParameter);
  std::string why = "the only path";
  if (wanted != nullptr && !wanted->empty()) {
    why = "parameter nodePath of the class";
  } else if (bases != nullptr && bases->size() > 1) {
    const auto selection = provisioner::path_selection_of(storage_class);
    const auto* const known = std::get_if<provisioner::PathSelection>(&selection);
    const bool most_free = known != nullptr && *known == provisioner::PathSelection::kMostFree;
    why = most_free ? fmt::format(
                          "one of {}; the one with most free space is taken, which is known "
                          "on the nodes only",
                          bases->size())
          : claim.meta.uid == kUnknownUid
              ? fmt::format("one of {}; chosen by the volume's name, which is not known yet",
                            bases->size())
              : fmt::format("one of {}, chosen by the volume's name", bases->size());
  }
  answer.steps.push_back({"base path", fmt::format("{} ({})", operation.base_path, why)});
}

void explain_patterns(const k8s::StorageClass& storage_class, const operation::Operation& operation,
                      PathAnswer& answer) {
  const std::string folder = operation.path.substr(operation.base_path.size() + 1);
  const std::string* const pattern = find(storage_class.parameters, provisioner::kPathPattern);
  if (pattern != nullptr && !pattern->empty()) {
    answer.steps.push_back({"pathPattern", *pattern});
    answer.steps.push_back({"directory", folder});
  } else {
    answer.steps.push_back(
        {"directory", folder + " (<volume>_<namespace>_<claim>: no pathPattern)"});
  }
  for (const auto& [name, value] :
       {std::pair{"user", operation.user}, std::pair{"group", operation.group},
        std::pair{"mode", operation.perm}}) {
    if (!value.empty()) answer.steps.push_back({name, value});
  }
}

void explain_shape(const operation::Shape& shape, PathAnswer& answer) {
  std::string text = shape.source == k8s::VolumeSource::kLocal ? "local" : "hostPath";
  text += shape.has_affinity ? fmt::format(", usable on nodes with {}={}", shape.affinity_key,
                                           shape.affinity_value)
                             : ", usable on every node";
  answer.steps.push_back({"volume", std::move(text)});
}

}  // namespace

PathAnswer explain_path(const k8s::PersistentVolumeClaim& claim,
                        const k8s::StorageClass& storage_class, const k8s::Node* node,
                        const config::Config& config,
                        const k8s::Store<k8s::PersistentVolume>& volumes,
                        const k8s::Store<k8s::Node>& nodes) {
  PathAnswer answer;
  if (node != nullptr) answer.node = node->meta.name;
  explain_entry(claim, config, node, answer);
  const auto refuse = [&](const std::string& message) {
    answer.refusal = message;
    return answer;
  };
  const auto shape = provisioner::make_shape(claim, storage_class, node, config);
  if (const auto* refusal = std::get_if<Refusal>(&shape)) return refuse(refusal->message);
  const auto planned = provisioner::make_operation(claim, storage_class, node, config);
  if (const auto* refusal = std::get_if<Refusal>(&planned)) return refuse(refusal->message);
  const auto& operation = std::get<operation::Operation>(planned);

  explain_base(claim, storage_class, config, operation, answer);
  explain_patterns(storage_class, operation, answer);
  explain_shape(std::get<operation::Shape>(shape), answer);
  answer.path = operation.path;
  if (const auto other = provisioner::overlapping_volume(
          volumes, nodes, operation, storage_class.provisioner, operation.volume_name)) {
    return refuse(fmt::format("path {} overlaps the directory {} of volume {}", operation.path,
                              other->path, other->meta.name));
  }
  return answer;
}

}  // namespace lpp::cli
