// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/sync.h"
#include "k8s/resource.h"

namespace lpp::k8s {

/// For kinds that are found by their key only.
template <typename T>
struct NoIndex {
  void add(const std::shared_ptr<const T>& /*object*/) {}
  void remove(const std::shared_ptr<const T>& /*object*/) {}
};

/// By what else a kind's objects are found: the kind says it with a member type `Index`.
template <typename T>
struct IndexOf {
  using Type = NoIndex<T>;
};
template <typename T>
requires requires { typename T::Index; }
struct IndexOf<T> {
  using Type = typename T::Index;
};

/// Read side of an informer's cache. Thread-safe. Objects are immutable snapshots and may be stale:
/// a missing object may exist, a present one may be gone. Reconcilers must be correct under both:
/// before anything is removed for good they ask the API server. Until the informer has synced the
/// store is empty, which says nothing of the cluster.
template <typename T>
class Store {
 public:
  using Objects = std::unordered_map<ObjectKey, std::shared_ptr<const T>>;

  /// nullptr: it is not there.
  std::shared_ptr<const T> get(const ObjectKey& key) const {
    MutexLock lock(mutex_);
    const auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second;
  }

  /// All objects, in no order. Copies pointers only.
  std::vector<std::shared_ptr<const T>> list() const {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<const T>> all;
    all.reserve(objects_.size());
    for (const auto& [key, object] : objects_) all.push_back(object);
    return all;
  }

  /// What `ask(index)` answers. An exception to the rule that no callback runs under a lock, here
  /// the store's: it looks at the index and at nothing else, and keeps no reference to it.
  template <typename Ask>
  auto query(const Ask& ask) const {
    MutexLock lock(mutex_);
    return ask(index_);
  }

  std::size_t size() const {
    MutexLock lock(mutex_);
    return objects_.size();
  }

  /// How often something has changed, and how often something has come or gone: as long as that is
  /// the same, so is what was made of the store.
  struct Changes {
    std::uint64_t all = 0;
    std::uint64_t keys = 0;
    bool operator==(const Changes&) const = default;
  };
  Changes changes() const {
    MutexLock lock(mutex_);
    return changes_;
  }

 protected:
  using Index = typename IndexOf<T>::Type;
  mutable Mutex mutex_;
  Objects objects_ LPP_GUARDED_BY(mutex_);
  Index index_ LPP_GUARDED_BY(mutex_);  // of what is in objects_, each object once
  Changes changes_ LPP_GUARDED_BY(mutex_);
};

/// Write side: exactly one per Store, used by its informer's thread, or by tests to set a scene.
/// The informer relies on it: what it reads from the store is what it has written last. What goes
/// out of the store is handed back, so that it is freed without the lock.
template <typename T>
class StoreWriter : public Store<T> {
 public:
  /// Returns the object that was there before, if any.
  std::shared_ptr<const T> put(const ObjectKey& key, std::shared_ptr<const T> object) {
    MutexLock lock(this->mutex_);
    auto& slot = this->objects_[key];
    ++this->changes_.all;
    if (!slot) ++this->changes_.keys;
    if (slot) this->index_.remove(slot);
    this->index_.add(object);
    std::swap(slot, object);
    return object;
  }

  /// Returns the object that was there, if any.
  std::shared_ptr<const T> erase(const ObjectKey& key) {
    MutexLock lock(this->mutex_);
    const auto it = this->objects_.find(key);
    if (it == this->objects_.end()) return nullptr;
    ++this->changes_.all;
    ++this->changes_.keys;
    auto old = std::move(it->second);
    this->objects_.erase(it);
    this->index_.remove(old);
    return old;
  }

  /// Puts a complete new state in place at once and returns the old one: readers never see a
  /// half-filled cache after a relist.
  typename Store<T>::Objects swap(typename Store<T>::Objects objects) {
    typename Store<T>::Index index;  // the old one in the end: outlives the lock
    for (const auto& [key, object] : objects) index.add(object);
    MutexLock lock(this->mutex_);
    ++this->changes_.all;
    ++this->changes_.keys;
    std::swap(objects, this->objects_);
    std::swap(index, this->index_);
    return objects;
  }
};

}  // namespace lpp::k8s
