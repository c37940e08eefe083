// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/orphan_board.h"
#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/path_ledger.h"

namespace lpp::app {

struct Subjects;

using Orphan = agent::OrphanBoard::Entry;

/// What is known of the cluster's volumes. Owns nothing.
struct OrphanScene {
  const k8s::Store<k8s::PersistentVolume>& volumes;
  const k8s::Store<k8s::PersistentVolumeClaim>& claims;
  const k8s::Store<k8s::Node>& nodes;
  const operation::PathLedger* ledger = nullptr;  // none: what is being made does not count
};

/// Of the directories those that are nobody's: no volume on that node is there, around or inside
/// it, or has its name, the claim that it was made for is gone or has its volume on another node,
/// and none is being made there. What is not known counts as somebody's. From memory: no call, no
/// error. All functions here may be called from any thread.
std::vector<Orphan> nobodys(const OrphanScene& scene, std::vector<Orphan> directories);

/// One word of `NoVolume`, `NoRecord`, `OtherCluster` and `Unfinished`, and a sentence for people.
std::string_view why_of(const agent::Listed& directory);
std::string message_of(const agent::Listed& directory);

/// The text of /orphans, for `volumes --orphans` and the commands that adopt and sweep them.
std::string orphans_page(const Subjects& subjects);

}  // namespace lpp::app
