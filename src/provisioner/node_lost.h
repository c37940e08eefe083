// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/api_client.h"
#include "k8s/objects.h"
#include "k8s/store.h"

/// Letting claims go whose node was deleted from the cluster. What was decided is written on the
/// volume before its claim is deleted: a node that comes back later finds its directories as they
/// were, and nothing removes them.
namespace lpp::provisioner {

/// How it ended for a claim; these are words for counting.
inline constexpr std::string_view kReleasedClaim = "released";
inline constexpr std::string_view kReleaseForbidden = "forbidden";
inline constexpr std::string_view kReleaseFailed = "failed";
inline constexpr std::string_view kNodeCameBack = "node_back";
inline constexpr std::string_view kKeepFailed = "keep_failed";

/// Whether the volume's own claim was let go, or is to be. Pure.
bool is_node_lost(const k8s::PersistentVolume& volume);
/// Whether that stands on it, be it of a claim that it had once. Pure.
bool has_node_lost_mark(const k8s::PersistentVolume& volume);

/// Whether the volume is on a node of its own that is none of these and whose name is known: by
/// label as well as by name, see node_of(). Of no nodes at all nothing is said. Pure.
bool is_on_none_of(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes);

/// All nodes by the API server's own word: every page of a consistent list, or an error.
Result<std::shared_ptr<const k8s::Store<k8s::Node>>> ask_for_nodes(k8s::ApiClient& client);

/// Such a list for all steps that need one at the same time. Thread-safe.
class NodeCensus {
 public:
  using Nodes = std::shared_ptr<const k8s::Store<k8s::Node>>;

  /// Nodes as they were at `not_before` or later, and not more than 2 s ago. nullptr: another
  /// thread is asking right now.
  Result<Nodes> ask(k8s::ApiClient& client, Clock& clock, TimePoint not_before);

 private:
  Mutex mutex_;
  bool asking_ LPP_GUARDED_BY(mutex_) = false;
  Nodes nodes_ LPP_GUARDED_BY(mutex_);
  TimePoint began_ LPP_GUARDED_BY(mutex_){};
};

// Each of these writes is refused by the API server (kConflict) if its object is not in the version
// given.
/// From here on no unmark_node_lost() of what was seen before succeeds, also when it was marked
/// already.
Result<void> mark_node_lost(k8s::ApiClient& client, const k8s::PersistentVolume& volume,
                            std::chrono::system_clock::time_point now);
Result<void> unmark_node_lost(k8s::ApiClient& client, const k8s::PersistentVolume& volume);
Result<void> delete_claim(k8s::ApiClient& client, const k8s::PersistentVolumeClaim& claim);
/// From here on no delete_claim() of what was seen before succeeds.
Result<void> keep_claim(k8s::ApiClient& client, const k8s::PersistentVolumeClaim& claim,
                        std::chrono::system_clock::time_point now);

}  // namespace lpp::provisioner
