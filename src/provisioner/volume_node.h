// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "k8s/objects.h"
#include "k8s/store.h"

/// On which node a volume's directory is. Pure functions of what they are given.
namespace lpp::provisioner {

/// Where a volume's directory is.
struct VolumeNode {
  enum class Kind {
    kNode,     // on `name`
    kAny,      // on a filesystem that every node shares
    kGone,     // on a node that is not there
    kUnclear,  // on one of several, or what the volume says does not agree: nothing is removed
  };
  Kind kind = Kind::kNode;
  std::string name{};         // kNode; kGone: the node's name as far as the volume has it
  std::string description{};  // kGone: the node, for people; kUnclear: a sentence that says why
};

/// From the volume alone, never today's configuration: its node affinity resolved to existing nodes
/// and its annotation, which must agree.
/// The affinity counts by label, for that is what the scheduler and the kubelet go by; a node
/// without the label counts as labelled with its name, as when a volume is made; and before a node
/// is called gone, one of that name counts whatever its labels are. It must leave one node, or the
/// annotation name one of those it leaves. A node of the annotation that the affinity excludes may
/// be another machine under an old name, so it decides nothing. Without an affinity: the
/// annotation's node if it exists, else kAny.
VolumeNode node_of(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes);

/// node_of() for a removal, which needs certainty: kAny only below a path that the configuration
/// says all nodes share. A volume that names no node is kUnclear elsewhere.
VolumeNode removal_node_of(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes,
                           const config::Config& config);

/// Whether the volume's directory may be on that node: what is not known may be. A volume of
/// another known node is not there, nor one whose affinity the labels of the node contradict.
bool may_be_on(const k8s::PersistentVolume& volume, const std::string& node,
               const k8s::Store<k8s::Node>& nodes);

/// Whether the node may be the volume's: something of the volume names it. Cheap, for all volumes
/// when a node comes, goes or changes.
bool concerns(const k8s::Node& node, const k8s::PersistentVolume& volume);

}  // namespace lpp::provisioner
