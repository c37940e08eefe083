// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "k8s/api_client.h"
#include "k8s/objects.h"
#include "k8s/reflector.h"
#include "k8s/store.h"

namespace lpp::k8s {

/// A change of one object. Added: no `before`. Deleted: no `after`. A deletion followed by a
/// re-creation may arrive as one update: compare UIDs.
template <typename T>
struct Change {
  std::shared_ptr<const T> before;
  std::shared_ptr<const T> after;
  const T& object() const { return after ? *after : *before; }
};

/// A reflector, its store and its thread. add_handler before start; the rest is thread-safe.
///
/// Handlers are called on that thread, in the order of the changes per object; they must be quick
/// and may only enqueue. A change is in the store before its handler runs. The first list comes as
/// additions, a later one as what differs from the store. An object whose resourceVersion did not
/// change is no change. An object that cannot be decoded keeps its last good state, if it had one,
/// and is logged once.
template <typename T>
class Informer final : private ReflectorSink {
 public:
  using Handler = std::function<void(const Change<T>&)>;
  /// Called on arrival, before the object is stored: drops what is not needed, but keeps name,
  /// namespace, UID and resourceVersion. False: the object is of no interest at all and is treated
  /// as one that does not exist. Optional.
  using Trim = std::function<bool(T&)>;

  /// `name` names the thread ("inf-" + name) and the log lines. The client and clock must outlive
  /// it.
  Informer(std::string name, ApiClient& client, Clock& clock, ReflectorOptions options,
           Trim trim = {});
  ~Informer() override;

  void add_handler(Handler handler) { handlers_.push_back(std::move(handler)); }
  /// At most once.
  void start();
  /// Returns at once; the thread ends within milliseconds (a handler that runs is waited for).
  void request_stop();
  void join();

  const Store<T>& store() const { return store_; }
  /// True once the first list is in the store and the handlers know of all of it; stays true.
  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  /// Sees to it that the store gets everything that had been written by `since`, through a list
  /// unless one has begun since then. Returns at once.
  void list_since(TimePoint since) { reflector_.list_since(since); }
  /// True once the store has it.
  bool listed_since(TimePoint since) const { return reflector_.listed_since(since); }
  const ReflectorStats& stats() const { return reflector_.stats(); }

 private:
  void list_begin() override;
  void list_item(Value object) override;
  void list_end() override;
  void applied(Value object) override;
  void deleted(Value object) override;

  struct Arrival {
    std::shared_ptr<const T> object;  // nullptr: of no interest, or unreadable
    bool readable = true;
  };
  /// Decodes and trims. An unreadable object is logged once per key.
  Arrival decode_trimmed(Value object, const ObjectKey& key);
  void emit(std::shared_ptr<const T> before, std::shared_ptr<const T> after) const;

  const std::string name_;
  const Trim trim_;
  std::vector<Handler> handlers_;  // constant after start()
  StoreWriter<T> store_;
  std::atomic<bool> synced_ = false;
  std::stop_source stop_;

  // Used by the informer's thread only.
  typename Store<T>::Objects incoming_;       // of the list in progress
  std::unordered_set<ObjectKey> unreadable_;  // already logged
  Reflector reflector_;

  std::jthread thread_;
};

extern template class Informer<PersistentVolumeClaim>;
extern template class Informer<PersistentVolume>;
extern template class Informer<StorageClass>;
extern template class Informer<Node>;
extern template class Informer<Pod>;
extern template class Informer<ConfigMap>;

}  // namespace lpp::k8s
