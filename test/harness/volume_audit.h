// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "harness/test_bed.h"

namespace lpp::testing {

/// A volume as it should be: bound, and with its directory where the volume says.
struct VolumeFacts {
  std::string pv{};
  std::string node{};
  std::string path{};  // on the node
  std::string disk{};  // the same directory on this machine
  std::string reclaim_policy{};
};

/// Looks at a whole test bed and says what does not fit together: volumes, directories on the
/// nodes' disks and helper pods. Thread-safe.
class VolumeAudit {
 public:
  explicit VolumeAudit(TestBed& bed) : bed_(bed) {}

  /// The volume of a bound claim. The error says why it is not (yet) what it should be.
  Result<VolumeFacts> bound_volume(const k8s::ObjectKey& claim);
  /// The same, once it is there; the error ends with the claim's events.
  Result<VolumeFacts> wait_bound(const k8s::ObjectKey& claim);
  /// Claim, volume and directory are gone; the error says what is not.
  Result<void> deleted(const k8s::ObjectKey& claim, const VolumeFacts& volume);
  /// The same, once it is so.
  Result<void> wait_deleted(const k8s::ObjectKey& claim, const VolumeFacts& volume);

  /// "" when every volume of ours has exactly one directory, every directory exactly one volume,
  /// and no helper pod is left; otherwise what is wrong.
  std::string leftovers();
  /// Waits until there are none: a helper pod may end after its volume.
  Result<void> wait_clean();
  /// The same, and until no directory is there. A volume that is still to go keeps its directory,
  /// and all is clean before.
  Result<void> wait_empty();

  /// All directories directly below the base paths of all nodes, as paths of this machine.
  std::vector<std::string> directories();

 private:
  TestBed& bed_;
};

}  // namespace lpp::testing
