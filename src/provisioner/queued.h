// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "k8s/objects.h"
#include "k8s/work_queue.h"
#include "provisioner/claim_reconciler.h"

// What the controller's queues hold.

namespace lpp::provisioner {

/// A claim or the name of a volume as its queue knows it. `line` is only for taking turns.
template <typename Key>
struct Queued {
  Key key;
  std::string line;
  bool operator==(const Queued& other) const { return key == other.key; }
};

template <typename Key>
struct HashOfKey {
  std::size_t operator()(const Queued<Key>& queued) const noexcept {
    return std::hash<Key>()(queued.key);
  }
};

template <typename Key>
struct LineOf {
  std::string_view operator()(const Queued<Key>& queued) const { return queued.line; }
};

template <typename Key>
using LinesOf = k8s::WorkQueue<Queued<Key>, HashOfKey<Key>, LineOf<Key>>;

/// In the line of its namespace.
inline Queued<ClaimKey> key_of(const ClaimKey& key) { return {key, key.claim.ns}; }

inline Queued<ClaimKey> key_of(const k8s::PersistentVolumeClaim& claim) {
  return key_of(ClaimKey{claim.meta.key(), claim.meta.uid});
}

inline Queued<std::string> key_of(const k8s::PersistentVolume& volume) {
  return {volume.meta.name, volume.claim.ns};
}

/// No namespace has such a name.
inline std::string line_of_node(const std::string& node) { return "node " + node; }

}  // namespace lpp::provisioner
