// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_node.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "provisioner/names.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

namespace {

using k8s::find;
using k8s::Node;
using k8s::NodeSelectorRequirement;
using k8s::NodeSelectorTerm;
using Terms = std::vector<NodeSelectorTerm>;
using Kind = VolumeNode::Kind;

constexpr std::string_view kNameField = "metadata.name";

/// A requirement and whether it is about a field.
struct Part {
  const NodeSelectorRequirement* requirement;
  bool is_field;

  bool is_in() const { return requirement->op == "In"; }
  /// Whether it stands for one machine whatever else a term asks for.
  bool names_machine() const {
    return is_in() && requirement->key == (is_field ? kNameField : kHostnameLabel);
  }
  bool lists(const std::string& value) const {
    const auto& values = requirement->values;
    return std::find(values.begin(), values.end(), value) != values.end();
  }
};

std::vector<Part> parts_of(const NodeSelectorTerm& term) {
  std::vector<Part> parts;
  for (const auto& requirement : term.match_expressions) parts.push_back({&requirement, false});
  for (const auto& requirement : term.match_fields) parts.push_back({&requirement, true});
  return parts;
}

/// Those that name a machine, if there are any: zones and the like change, the machine does not.
std::vector<Part> deciding_parts(const NodeSelectorTerm& term) {
  std::vector<Part> parts = parts_of(term);
  const auto names_machine = [](const Part& part) { return part.names_machine(); };
  if (std::any_of(parts.begin(), parts.end(), names_machine)) {
    parts.erase(std::remove_if(parts.begin(), parts.end(), std::not_fn(names_machine)),
                parts.end());
  }
  return parts;
}

const std::string* value_on(const Node& node, const Part& part) {
  if (!part.is_field) return find(node.meta.labels, part.requirement->key);
  return part.requirement->key == kNameField ? &node.meta.name : nullptr;
}

bool holds(const Part& part, const Node& node) {
  const std::string* value = value_on(node, part);
  const std::string& op = part.requirement->op;
  if (part.is_field && value == nullptr) return false;
  if (op == "In") return part.lists(value == nullptr ? node.meta.name : *value);
  if (op == "NotIn") return value == nullptr || !part.lists(*value);
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  return false;  // Gt and Lt never come from a provisioner of directories
}

/// From the surest to the least sure.
enum class Way {
  kWhole,    // all that a term asks for
  kMachine,  // of it, what names a machine
  kName,     // the value as the name of a node, whatever its labels are
};
constexpr std::array kWays{Way::kWhole, Way::kMachine, Way::kName};

bool matches(const NodeSelectorTerm& term, const Node& node, Way way) {
  const std::vector<Part> parts = way == Way::kWhole ? parts_of(term) : deciding_parts(term);
  if (way == Way::kName) {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
      return part.is_in() && part.lists(node.meta.name);
    });
  }
  if (way == Way::kMachine && !parts.empty() && !parts.front().names_machine()) return false;
  return !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                       [&](const Part& part) { return holds(part, node); });
}

bool matches(const Terms& terms, const Node& node, Way way) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const auto& term) { return matches(term, node, way); });
}

/// Whether the node's labels exclude it. A label that is not there may only not be there yet, as on
/// a node that was made anew.
bool contradicts(const Terms& terms, const Node& node) {
  if (matches(terms, node, Way::kName)) return false;
  return std::all_of(terms.begin(), terms.end(), [&](const NodeSelectorTerm& term) {
    const std::vector<Part> parts = deciding_parts(term);
    return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
             const bool unknown = part.is_in() && value_on(node, part) == nullptr;
             return !unknown && !holds(part, node);
           });
  });
}

/// A value of these is many machines', so that the one node which has it need not be the volume's.
bool is_of_many(std::string_view key) {
  constexpr std::array<std::string_view, 5> kOfMany{
      "kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/",
      "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/instance-type"};
  return std::any_of(kOfMany.begin(), kOfMany.end(),
                     [&](std::string_view one) { return key.starts_with(one); });
}

/// Whether the term is met by one machine at most, if labels are as they should be.
bool names_one(const NodeSelectorTerm& term) {
  bool named = false;
  for (const Part& part : deciding_parts(term)) {
    if (!part.is_in()) continue;
    if (part.requirement->values.size() != 1) return false;
    named = named || !is_of_many(part.requirement->key);
  }
  return named;
}

bool has_in(const Terms& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const NodeSelectorTerm& term) {
    const auto parts = parts_of(term);
    return std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_in(); });
  });
}

/// "kubernetes.io/hostname In n1", with " or " between terms.
std::string describe(const Terms& terms) {
  std::string text;
  for (const auto& term : terms) {
    std::string all;
    for (const Part& part : parts_of(term)) {
      all += (all.empty() ? "" : ", ") + part.requirement->key + " " + part.requirement->op;
      for (const auto& value : part.requirement->values) all += " " + value;
    }
    text += (text.empty() ? "" : " or ") + all;
  }
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kShown ? text + ", ..." : text;
}

/// An affinity and what the cluster has for it.
struct Resolved {
  Way way = Way::kName;
  std::vector<std::string> names{};  // in order
};

Resolved resolve(const Terms& terms, const k8s::Store<Node>& nodes) {
  const auto all = nodes.list();
  for (const Way way : kWays) {
    Resolved found{.way = way};
    for (const auto& node : all) {
      if (matches(terms, *node, way)) found.names.push_back(node->meta.name);
    }
    std::sort(found.names.begin(), found.names.end());
    if (!found.names.empty()) return found;
  }
  return {};
}

/// The value by which the affinity names a node that is not there, as far as it can be its name.
std::string name_in(const Terms& terms) {
  for (const auto& term : terms) {
    for (const Part& part : parts_of(term)) {
      if (part.names_machine() && part.requirement->values.size() == 1) {
        return part.requirement->values.front();
      }
    }
  }
  return {};
}

VolumeNode unclear(std::string why) {
  return {.kind = Kind::kUnclear, .description = std::move(why)};
}

VolumeNode by_affinity_alone(const Terms& terms, const std::string& annotation,
                             const Resolved& found, const k8s::Store<Node>& nodes) {
  const std::string text = "node affinity (" + describe(terms) + ")";
  if (found.names.empty()) {
    if (!has_in(terms)) return unclear("its " + text + " names no node");
    if (!annotation.empty()) {
      return {.kind = Kind::kGone, .name = annotation, .description = annotation};
    }
    return {.kind = Kind::kGone, .name = name_in(terms), .description = describe(terms)};
  }
  if (found.names.size() > 1) {
    return unclear("its " + text + " is met by several nodes: " + joined(found.names));
  }
  // Another term, or another value, may be of a node that is not there any more.
  const auto only = nodes.get({"", found.names.front()});
  const bool one =
      only != nullptr && std::all_of(terms.begin(), terms.end(), [&](const NodeSelectorTerm& term) {
        const bool empty = term.match_expressions.empty() && term.match_fields.empty();
        return empty || (names_one(term) && matches(term, *only, found.way));
      });
  if (one) return {.name = found.names.front()};
  return unclear("its " + text + " is met by node " + found.names.front() +
                 ", but it could have been on another one");
}

}  // namespace

VolumeNode node_of(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes) {
  const Terms& terms = volume.node_affinity;
  const std::string* const annotated = find(volume.meta.annotations, kVolumeSelectedNode);
  const std::string annotation = annotated == nullptr ? std::string() : *annotated;
  const auto node = annotation.empty() ? nullptr : nodes.get({"", annotation});
  if (terms.empty()) {
    if (node == nullptr) return {.kind = Kind::kAny};
    return {.name = annotation};
  }
  if (node != nullptr && matches(terms, *node, Way::kWhole)) return {.name = annotation};
  const Resolved found = resolve(terms, nodes);
  if (node == nullptr) return by_affinity_alone(terms, annotation, found, nodes);
  if (std::binary_search(found.names.begin(), found.names.end(), annotation)) {
    return {.name = annotation};
  }
  const std::string text = ", its node affinity (" + describe(terms) + ")";
  if (!found.names.empty()) {
    return unclear("its annotation names node " + annotation + text + " node " +
                   joined(found.names));
  }
  if (contradicts(terms, *node)) {
    return unclear("its annotation names node " + annotation + text +
                   " excludes that node and is met by no other");
  }
  return {.name = annotation};
}

VolumeNode removal_node_of(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes,
                           const config::Config& config) {
  if (volume.node_affinity.empty() && is_on_shared_filesystem(volume.path, config)) {
    return {.kind = Kind::kAny};  // the node where the volume was made may be down
  }
  VolumeNode node = node_of(volume, nodes);
  if (node.kind != Kind::kAny) return node;
  return unclear(
      "it has no node affinity, and no sharedFileSystemPath of the configuration "
      "contains it");
}

bool may_be_on(const k8s::PersistentVolume& volume, const std::string& node,
               const k8s::Store<k8s::Node>& nodes) {
  if (volume.node_affinity.empty()) return true;  // maybe on a shared filesystem
  // The annotation is also what the node was called once, and operations know nodes by their names.
  const std::string* const annotation = find(volume.meta.annotations, kVolumeSelectedNode);
  if (annotation != nullptr && *annotation == node) return true;
  const VolumeNode known = node_of(volume, nodes);
  const auto there = nodes.get({"", node});
  if (known.kind == Kind::kNode && known.name != node) {
    // A machine that has registered under another name while its old object is still there.
    const auto& terms = volume.node_affinity;
    return there != nullptr && terms.size() == 1 && names_one(terms.front()) &&
           matches(terms, *there, Way::kWhole);
  }
  if (known.kind == Kind::kNode) return true;
  return there == nullptr || !contradicts(volume.node_affinity, *there);
}

bool concerns(const k8s::Node& node, const k8s::PersistentVolume& volume) {
  const std::string* const annotation = find(volume.meta.annotations, kVolumeSelectedNode);
  if (annotation != nullptr && *annotation == node.meta.name) return true;
  return std::any_of(kWays.begin(), kWays.end(),
                     [&](Way way) { return matches(volume.node_affinity, node, way); });
}

}  // namespace lpp::provisioner
