// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/result.h"
#include "node/kernel.h"
#include "node/record_folder.h"
#include "node/volumes.h"

namespace lpp::agent {

/// What an agent has begun in one base folder, on that folder's own disk: one small file for each
/// operation, in the folder of the records. Written before anything is done, rewritten with the
/// outcome, and removed when nobody needs it any more. It survives the end of the process, not a
/// power cut: there the volumes' own records are the truth, and all work may be done again.
///
/// Opened for each use, so that no disk is held; on the disk that `volumes` has open. Thread-safe
/// as long as one thread at a time works at an operation. The kernel must outlive it.
class WorkBook {
 public:
  static Result<WorkBook> open(node::Kernel& kernel, const node::Volumes& volumes);

  /// Whose works are to be loaded: those that name no cluster are of the cluster whose records the
  /// folder holds. What is not known ("") decides nothing.
  struct Whose {
    std::string ours{};
    std::string records{};
    bool is_foreign(const std::string& cluster) const {
      const std::string& theirs = cluster.empty() ? records : cluster;
      return !ours.empty() && !theirs.empty() && theirs != ours;
    }
    bool operator==(const Whose&) const = default;
  };
  struct Loaded {
    std::vector<Work> works{};            // begun; with an outcome if they are over
    std::vector<std::string> problems{};  // files that cannot be read, each with its name
    std::vector<std::string> foreign{};   // works of another cluster, by key_of()
  };
  /// What was never begun is dropped; what cannot be read is left alone, and so is what another
  /// cluster's controller has ordered.
  Result<Loaded> load(const Whose& whose) const;

  /// A base folder without records gets some for a make only: else nothing is written where nothing
  /// is, for it may be the mount point of a disk that is missing.
  Result<void> put(const Work& work) const;
  Result<void> drop(const operation::Operation& operation) const;

 private:
  WorkBook(node::Kernel& kernel, UniqueFd base) : kernel_(&kernel), base_(std::move(base)) {}

  node::Kernel* kernel_;
  UniqueFd base_;
};

/// Tells operations apart, in one word.
std::string key_of(const operation::Id& id);

}  // namespace lpp::agent
