// SPDX-License-Identifier: Apache-2.0
#include "k8s/informer.h"

#include "base/log.h"
#include "base/strings.h"

namespace lpp::k8s {

namespace {

constexpr std::size_t kMaxUnreadable = 1000;

/// What identifies an object and its state; empty texts for what is missing.
struct Identity {
  ObjectKey key;
  std::string_view uid;
  std::string_view resource_version;
};

Identity identify(Value object) {
  const Value meta = object.find("metadata");
  return {
      .key = {std::string(meta.find("namespace").text()), std::string(meta.find("name").text())},
      .uid = meta.find("uid").text(),
      .resource_version = meta.find("resourceVersion").text()};
}

template <typename T>
ReflectorOptions with_fields_of(ReflectorOptions options) {
  options.projection = fields_of<T>();
  return options;
}

bool unchanged(const ObjectMeta& meta, std::string_view uid, std::string_view version) {
  return meta.uid == uid && meta.resource_version == version && !version.empty();
}

}  // namespace

template <typename T>
Informer<T>::Informer(std::string name, ApiClient& client, Clock& clock, ReflectorOptions options,
                      Trim trim)
    : name_(std::move(name)),
      trim_(std::move(trim)),
      reflector_(client, clock, with_fields_of<T>(std::move(options)), *this) {}

template <typename T>
Informer<T>::~Informer() {
  request_stop();
  join();
}

template <typename T>
void Informer<T>::start() {
  thread_ = std::jthread([this] {
    set_thread_name("inf-" + name_);
    reflector_.run(stop_.get_token());
  });
}

template <typename T>
void Informer<T>::request_stop() {
  stop_.request_stop();
}

template <typename T>
void Informer<T>::join() {
  if (thread_.joinable()) thread_.join();
}

template <typename T>
void Informer<T>::list_begin() {
  incoming_.clear();
}

template <typename T>
void Informer<T>::list_item(Value object) {
  const Identity identity = identify(object);
  auto known = store_.get(identity.key);
  // A relist mostly brings what we have: share it instead of holding everything twice.
  if (known && unchanged(known->meta, identity.uid, identity.resource_version)) {
    incoming_.insert_or_assign(identity.key, std::move(known));
    return;
  }
  auto now = decode_trimmed(object, identity.key);
  if (now.object) {
    incoming_.insert_or_assign(identity.key, std::move(now.object));
  } else if (!now.readable && known && known->meta.uid == identity.uid) {
    // Its last good state: without it the object would be told as deleted.
    incoming_.insert_or_assign(identity.key, std::move(known));
  }
}

template <typename T>
void Informer<T>::list_end() {
  const auto before = store_.swap(std::exchange(incoming_, {}));
  // Only this thread writes to the store: what list() gives is what was swapped in. What the list
  // shares with the store before has not changed.
  for (auto& now : store_.list()) {
    const auto it = before.find(now->meta.key());
    auto old = it == before.end() ? nullptr : it->second;
    if (old != now) emit(std::move(old), std::move(now));
  }
  for (const auto& [key, old] : before) {
    if (!store_.get(key)) emit(old, nullptr);
  }
  if (!synced_.exchange(true, std::memory_order_release)) {
    log::info("informer {}: synced, {} objects", name_, store_.size());
  }
}

template <typename T>
void Informer<T>::applied(Value object) {
  const Identity identity = identify(object);
  if (const auto known = store_.get(identity.key);
      known && unchanged(known->meta, identity.uid, identity.resource_version)) {
    return;
  }
  auto now = decode_trimmed(object, identity.key);
  if (!now.readable) return;
  auto before = now.object ? store_.put(identity.key, now.object) : store_.erase(identity.key);
  if (before || now.object) emit(std::move(before), std::move(now.object));
}

template <typename T>
void Informer<T>::deleted(Value object) {
  const Identity identity = identify(object);
  auto before = store_.erase(identity.key);
  // The frame holds the object's last state, which may be newer than ours.
  if (before) {
    if (auto last = decode_trimmed(object, identity.key); last.object) {
      before = std::move(last.object);
    }
  }
  unreadable_.erase(identity.key);
  if (!before) return;
  emit(std::move(before), nullptr);
}

template <typename T>
typename Informer<T>::Arrival Informer<T>::decode_trimmed(Value object, const ObjectKey& key) {
  auto decoded = decode<T>(object);
  if (!decoded.ok()) {
    if (unreadable_.size() >= kMaxUnreadable) unreadable_.clear();
    if (unreadable_.insert(key).second) {
      log::warn("informer {}: object {} is skipped: {}", name_, log::quoted(key.to_string()),
                log::quoted(decoded.error().message));
    }
    return {.object = nullptr, .readable = false};
  }
  unreadable_.erase(key);
  if (trim_ && !trim_(*decoded)) return {};
  return {.object = std::make_shared<const T>(*std::move(decoded))};
}

template <typename T>
void Informer<T>::emit(std::shared_ptr<const T> before, std::shared_ptr<const T> after) const {
  const Change<T> change{.before = std::move(before), .after = std::move(after)};
  for (const Handler& handler : handlers_) handler(change);
}

template class Informer<PersistentVolumeClaim>;
template class Informer<PersistentVolume>;
template class Informer<StorageClass>;
template class Informer<Node>;
template class Informer<Pod>;
template class Informer<ConfigMap>;

}  // namespace lpp::k8s
