// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/sync.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/resources.h"
#include "devcluster/apiserver/status.h"
#include "devcluster/apiserver/store.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

/// A watch that waits for changes of some resources. Owned by the watch; the fields are protected
/// by the registry's lock.
struct Waiter {
  std::uint64_t resources = 0;  ///< bit per index into resource_table()
  bool stopped = false;
  CondVar changed;
};

/// The Registry's state. Public methods take the lock; the others, named *_locked, expect it.
class Registry::Impl {
 public:
  explicit Impl(Options options);

  Reply get(const ObjectRef& ref) const;
  ListReply list(std::string_view resource, const ListOptions& options) const;
  Reply create(std::string_view resource, std::string_view ns, const Json& object,
               const WriteOptions& options);
  Reply update(const ObjectRef& ref, const Json& object, const WriteOptions& options);
  Reply patch(const ObjectRef& ref, PatchType type, const Json& patch, const WriteOptions& options);
  Reply remove(const ObjectRef& ref, const DeleteOptions& options);
  Reply bind_pod(std::string_view ns, std::string_view name, std::string_view node);

  std::uint64_t version() const;
  void compact();
  void stop_watches();

  /// For RegistryWatch: changes after `cursor` that concern `resources`, at most a batch of them;
  /// waits up to `timeout` for the first. `cursor` moves on. `expired` when history was lost.
  struct Batch {
    std::vector<Change> changes;
    bool expired = false;
    std::uint64_t oldest = 0;
  };
  Batch wait_for_changes(Waiter& waiter, std::uint64_t& cursor, std::chrono::milliseconds timeout);
  void add_waiter(Waiter& waiter);
  void remove_waiter(Waiter& waiter);
  void stop_waiter(Waiter& waiter);
  bool is_stopped(const Waiter& waiter) const;
  /// Current objects of one resource together with the version they are from.
  std::vector<ObjectPtr> snapshot(std::size_t resource, std::string_view ns) const;
  std::vector<std::vector<ObjectPtr>> snapshots(const std::vector<std::size_t>& resources,
                                                std::string_view ns, std::uint64_t& version) const;

 private:
  std::string now_text() const;
  std::string random_suffix_locked() LPP_REQUIRES(mutex_);
  Reply create_locked(const ResourceInfo& info, Json object, const WriteOptions& options)
      LPP_REQUIRES(mutex_);
  /// Namespace exists and takes new objects; Pod Security; default class.
  std::optional<Reply> admit_locked(const ResourceInfo& info, Json& object) LPP_REQUIRES(mutex_);
  void set_default_class_locked(Json& claim) LPP_REQUIRES(mutex_);
  /// The one that the claim names; null when it is not there.
  Json class_of_locked(const Json& claim) const LPP_REQUIRES(mutex_);
  Reply update_locked(const ResourceInfo& info, const ObjectPtr& current, Json next,
                      const WriteOptions& options, bool is_patch) LPP_REQUIRES(mutex_);
  Reply remove_locked(const ResourceInfo& info, const std::string& key,
                      const DeleteOptions& options) LPP_REQUIRES(mutex_);
  Reply remove_namespace_locked(const std::string& name, const ObjectPtr& current, bool mark_only)
      LPP_REQUIRES(mutex_);
  /// Removes the namespace when it is terminating and empty.
  void finish_namespace_locked(const std::string& name) LPP_REQUIRES(mutex_);
  ObjectPtr put_locked(const ResourceInfo& info, const std::string& key, Json object)
      LPP_REQUIRES(mutex_);
  ObjectPtr erase_locked(const ResourceInfo& info, const std::string& key) LPP_REQUIRES(mutex_);
  void notify_locked(std::size_t resource) LPP_REQUIRES(mutex_);
  ListReply page_locked(const ResourceInfo& info, const ListOptions& options) const
      LPP_REQUIRES(mutex_);

  // Constant after construction.
  const Options options_;

  mutable Mutex mutex_;
  Store store_ LPP_GUARDED_BY(mutex_);
  std::vector<Waiter*> waiters_ LPP_GUARDED_BY(mutex_);
  bool stopped_ LPP_GUARDED_BY(mutex_) = false;
  std::mt19937_64 random_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
