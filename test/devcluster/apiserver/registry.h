// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The embedded cluster's object store: what an API server does between its HTTP layer and its
/// disk. It is for trying and testing; nothing is kept when the process ends, nobody is refused.
///
/// Resources are named by their plural ("pods", "persistentvolumeclaims", "storageclasses", ...;
/// the table is in resources.h); `ns` is empty for cluster-scoped ones. Objects are immutable
/// snapshots with apiVersion and kind. Every failure is a Reply with the HTTP code and the Status
/// object that a real API server would send; nothing throws for bad input.
///
/// Thread-safe, in process and below the HTTP server alike. No callback runs under the lock.
namespace lpp::devcluster {

using ObjectPtr = std::shared_ptr<const nlohmann::json>;

/// HTTP code and body: the object after the call, or a Status.
struct [[nodiscard]] Reply {
  int code = 0;
  ObjectPtr body;

  bool ok() const { return code >= 200 && code < 300; }
  bool not_found() const { return code == 404; }
  bool conflict() const { return code == 409; }
  /// Status.reason of a failure ("Conflict", "AlreadyExists", ...), empty for a success.
  std::string reason() const;
  /// Status.message of a failure, empty for a success.
  std::string message() const;
};

struct ObjectRef {
  std::string resource;
  std::string ns;
  std::string name;
};

struct WriteOptions {
  std::string subresource{};  ///< "" or "status"
  bool dry_run = false;
  std::string field_manager{};
};

enum class PatchType { kJson, kMerge, kStrategicMerge, kApply };

struct DeleteOptions {
  std::optional<std::chrono::seconds> grace_period{};  ///< pods only; empty: the pod's own
  std::string uid_precondition{};                      ///< empty: none
  std::string resource_version_precondition{};         ///< empty: none
  bool dry_run = false;
  /// Namespaces only: sets them Terminating but leaves their content to a later remove().
  bool mark_only = false;
};

struct ListOptions {
  std::string ns{};  ///< empty: all namespaces
  std::string label_selector{};
  std::string field_selector{};
  std::int64_t limit = 0;  ///< 0: everything
  std::string continue_token{};
  std::string resource_version{};
  std::string resource_version_match{};
};

struct [[nodiscard]] ListReply {
  int code = 200;
  ObjectPtr status{};  ///< set when code is not 200
  std::vector<ObjectPtr> items{};
  std::string resource_version{};
  std::string continue_token{};
  std::optional<std::int64_t> remaining{};

  bool ok() const { return code == 200; }
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type = WatchEventType::kAdded;
  /// The object after the change; for kDeleted its last state with the resourceVersion of the
  /// deletion; for kError a Status; null for kBookmark.
  ObjectPtr object{};
  std::string resource{};
  std::uint64_t resource_version = 0;
  bool initial_events_end = false;  ///< a kBookmark that ends the initial list
};

struct WatchOptions {
  /// One or more; several arrive in one common order.
  std::vector<std::string> resources{};
  std::string ns{};  ///< empty: all namespaces
  std::string label_selector{};
  std::string field_selector{};
  /// "" or "0": the current objects as kAdded first, then changes. "N": the changes after N.
  std::string resource_version{};
  /// The WatchList protocol: current objects as kAdded, then a bookmark that ends them.
  bool send_initial_events = false;
};

class Registry;

/// One subscription: a cursor in the registry's history. Slow readers never block writers; one
/// that falls behind the history gets kError with an Expired Status (410) and must list again.
/// next() by one thread at a time, stop() by any. Must not outlive its Registry.
class Watch {
 public:
  virtual ~Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The next event; empty when `timeout` passed, or after stop() or kError.
  virtual std::optional<WatchEvent> next(std::chrono::milliseconds timeout) = 0;
  /// Ends a blocked next() at once, and all later ones.
  virtual void stop() = 0;
  /// True after stop(), Registry::stop_watches() or kError: next() gives nothing any more.
  virtual bool ended() const = 0;
  /// Everything up to here was delivered (or does not concern this watch).
  virtual std::uint64_t resource_version() const = 0;

 protected:
  Watch() = default;
};

struct [[nodiscard]] WatchReply {
  int code = 200;
  ObjectPtr status{};  ///< set when code is not 200
  std::unique_ptr<Watch> watch{};

  bool ok() const { return code == 200; }
};

class Registry {
 public:
  struct Options {
    std::size_t history_size = 10'000;                             ///< events kept for watches
    std::uint64_t first_version = 1'000;                           ///< where resourceVersion starts
    std::function<std::chrono::system_clock::time_point()> now{};  ///< empty: the system's clock
    bool standard_namespaces = true;  ///< create default, kube-system, kube-public, kube-node-lease
    /// The feature gate RecoverVolumeExpansionFailure, which is off before Kubernetes 1.32.
    bool recovers_expansion = true;
  };

  Registry();
  explicit Registry(Options options);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // --- the API's verbs -------------------------------------------------------------------------

  Reply get(const ObjectRef& ref) const;
  ListReply list(std::string_view resource, const ListOptions& options = {}) const;
  /// 201. `object` needs no apiVersion/kind; metadata.namespace is taken from `ns`.
  Reply create(std::string_view resource, std::string_view ns, const nlohmann::json& object,
               const WriteOptions& options = {});
  /// PUT. With metadata.resourceVersion in `object` it is optimistically locked (409).
  Reply update(const ObjectRef& ref, const nlohmann::json& object,
               const WriteOptions& options = {});
  Reply patch(const ObjectRef& ref, PatchType type, const nlohmann::json& patch,
              const WriteOptions& options = {});
  /// 200. Pods on a node get deletionTimestamp first unless grace_period is 0; finalizers hold
  /// any object back. Whoever removes the last finalizer of a deleting object removes the object.
  Reply remove(const ObjectRef& ref, const DeleteOptions& options = {});
  ListReply remove_collection(std::string_view resource, const ListOptions& selection,
                              const DeleteOptions& options = {});
  /// pods/binding: sets spec.nodeName and the PodScheduled condition; 409 when already bound.
  Reply bind_pod(std::string_view ns, std::string_view name, std::string_view node);
  WatchReply watch(const WatchOptions& options) const;

  // --- shorthands for controllers ----------------------------------------------------------------

  /// The object, or null.
  ObjectPtr find(std::string_view resource, std::string_view ns, std::string_view name) const;
  /// All objects of a resource (of one namespace unless `ns` is empty).
  std::vector<ObjectPtr> all(std::string_view resource, std::string_view ns = {}) const;
  /// Reads, lets `change` edit a copy, writes it back; again after a conflict. `change` returns
  /// false to leave the object alone (the Reply is then that of the read).
  Reply modify(const ObjectRef& ref, const std::function<bool(nlohmann::json&)>& change,
               const WriteOptions& options = {});

  // --- for tests and the HTTP layer ------------------------------------------------------------

  std::uint64_t resource_version() const;
  /// Forgets the history: watches and continue tokens from before get 410.
  void compact();
  /// Ends every running watch; new ones end at once.
  void stop_watches();

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lpp::devcluster
