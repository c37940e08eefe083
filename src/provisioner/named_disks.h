// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/sync.h"
#include "k8s/objects.h"
#include "k8s/store.h"

namespace lpp::provisioner {

/// disks_named() of the volumes in a store, for which those that name a disk are sorted by their
/// node: base paths are asked about by the thousand, and not each time all volumes are looked at.
/// Thread-safe.
class NamedDisks {
 public:
  NamedDisks(const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes)
      : volumes_(volumes), nodes_(nodes) {}

  std::vector<std::string> of(const std::string& node, const std::string& base_path,
                              const std::vector<std::string>& base_paths);
  /// How often all volumes were looked at.
  std::size_t passes() const;

 private:
  void sort() LPP_REQUIRES(mutex_);

  const k8s::Store<k8s::PersistentVolume>& volumes_;
  const k8s::Store<k8s::Node>& nodes_;
  mutable Mutex mutex_;
  std::size_t passes_ LPP_GUARDED_BY(mutex_) = 0;
  k8s::Store<k8s::PersistentVolume>::Changes of_volumes_ LPP_GUARDED_BY(mutex_){};
  k8s::Store<k8s::Node>::Changes of_nodes_ LPP_GUARDED_BY(mutex_){};
  /// Names, by the node that is noted on them; "" = none, or it is not there any more.
  std::map<std::string, std::vector<std::string>> names_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::provisioner
