// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "k8s/objects.h"
#include "k8s/store.h"

namespace lpp::provisioner {

/// How far the cache of volumes is behind, as our own writes tell: it takes up what is written to
/// volumes in the order of writing, so once it shows one of ours it has everything that others
/// wrote before. That a watch is connected, or was heard lately, would say less. Thread-safe.
class VolumesKnown {
 public:
  explicit VolumesKnown(const k8s::Store<k8s::PersistentVolume>& volumes) : volumes_(volumes) {}

  /// We have changed the volume by a request that was sent at `asked` or later. Until the cache
  /// knows of it, it shows the volume in one of the versions `before`.
  void wrote(TimePoint asked, const std::string& name, std::vector<std::string> before);
  /// The cache has everything that was written before this; min() = nobody knows.
  TimePoint until();
  /// When the last of our writes was that the cache does not show yet; min() = it shows all.
  TimePoint awaited();

 private:
  struct Write {
    TimePoint asked{};
    std::string name{};
    std::vector<std::string> before{};
  };
  void look() LPP_REQUIRES(mutex_);

  const k8s::Store<k8s::PersistentVolume>& volumes_;
  Mutex mutex_;
  TimePoint until_ LPP_GUARDED_BY(mutex_) = TimePoint::min();
  std::deque<Write> writes_ LPP_GUARDED_BY(mutex_);  // not shown yet, the oldest first
};

}  // namespace lpp::provisioner
