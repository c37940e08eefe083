// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/registry_watch.h"

#include <algorithm>
#include <charconv>
#include <deque>

#include "devcluster/apiserver/selectors.h"

namespace lpp::devcluster {
namespace {

struct Selection {
  std::string ns;
  LabelSelector labels;
  std::vector<FieldSelector> fields;  ///< per index into resource_table(); empty: none

  bool matches(std::size_t resource, const ObjectPtr& object) const {
    if (object == nullptr) return false;
    if (!ns.empty() && namespace_of(*object) != ns) return false;
    return labels.matches(*object) && (fields.empty() || fields[resource].matches(*object));
  }
};

class RegistryWatch final : public Watch {
 public:
  RegistryWatch(Registry::Impl& registry, Selection selection, std::uint64_t resources,
                std::uint64_t cursor)
      : registry_(registry), selection_(std::move(selection)), cursor_(cursor) {
    waiter_.resources = resources;
    registry_.add_waiter(waiter_);
  }
  ~RegistryWatch() override { registry_.remove_waiter(waiter_); }

  void push(WatchEvent event) { ready_.push_back(std::move(event)); }

  std::optional<WatchEvent> next(std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (true) {
      if (registry_.is_stopped(waiter_)) return std::nullopt;
      if (!ready_.empty()) {
        WatchEvent event = std::move(ready_.front());
        ready_.pop_front();
        delivered_ = std::max(delivered_, event.resource_version);
        if (event.type == WatchEventType::kError) stop();
        return event;
      }
      delivered_ = std::max(delivered_, cursor_);
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      const auto before = cursor_;
      auto batch = registry_.wait_for_changes(waiter_, cursor_,
                                              std::max(left, std::chrono::milliseconds(0)));
      if (batch.expired) {
        const Reply status = watch_expired(before, batch.oldest);
        push(WatchEvent{.type = WatchEventType::kError, .object = status.body});
        continue;
      }
      for (const auto& change : batch.changes) take(change);
      if (ready_.empty() && left.count() <= 0) {
        delivered_ = std::max(delivered_, cursor_);
        return std::nullopt;
      }
    }
  }

  void stop() override { registry_.stop_waiter(waiter_); }
  bool ended() const override { return registry_.is_stopped(waiter_); }
  std::uint64_t resource_version() const override { return delivered_; }

 private:
  /// A change as this selection sees it: objects may enter and leave the selection.
  void take(const Change& change) {
    const bool now = change.type != WatchEventType::kDeleted &&
                     selection_.matches(change.resource, change.object);
    const bool before = selection_.matches(change.resource, change.previous);
    if (!now && !before) return;
    WatchEvent event;
    event.resource = resource_table()[change.resource].plural;
    event.resource_version = change.version;
    if (now) {
      event.type = before ? WatchEventType::kModified : WatchEventType::kAdded;
      event.object = change.object;
    } else {
      event.type = WatchEventType::kDeleted;
      event.object = change.type == WatchEventType::kDeleted ? change.object : left(change);
    }
    push(std::move(event));
  }

  /// The last state within the selection, with the version of the change that took it out.
  static ObjectPtr left(const Change& change) {
    Json object = *change.previous;
    object["metadata"]["resourceVersion"] = std::to_string(change.version);
    return std::make_shared<const Json>(std::move(object));
  }

  Registry::Impl& registry_;
  const Selection selection_;
  Waiter waiter_;
  // Used by the thread in next() only.
  std::deque<WatchEvent> ready_;
  std::uint64_t cursor_;
  std::uint64_t delivered_ = 0;
};

WatchReply refused_watch(const Reply& reply) {
  return WatchReply{.code = reply.code, .status = reply.body, .watch = nullptr};
}

}  // namespace

WatchReply start_watch(Registry::Impl& registry, const WatchOptions& options) {
  std::uint64_t from = 0;
  const std::string& text = options.resource_version;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), from);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size())) {
    return refused_watch(bad_request("Invalid value: \"" + text +
                                     "\": strconv.ParseUint: parsing \"" + text +
                                     "\": invalid syntax"));
  }
  Selection selection;
  selection.ns = options.ns;
  auto labels = LabelSelector::parse(options.label_selector);
  if (!labels.ok()) return refused_watch(bad_request(labels.error().message));
  selection.labels = std::move(labels).value();
  if (!options.field_selector.empty()) selection.fields.resize(resource_table().size());

  std::vector<std::size_t> indexes;
  std::uint64_t mask = 0;
  for (const auto& name : options.resources) {
    const auto* info = find_resource(name);
    if (info == nullptr) return refused_watch(unknown_resource());
    indexes.push_back(resource_index(*info));
    mask |= std::uint64_t{1} << indexes.back();
    if (selection.fields.empty()) continue;
    auto fields = FieldSelector::parse(options.field_selector, *info);
    if (!fields.ok()) return refused_watch(bad_request(fields.error().message));
    selection.fields[indexes.back()] = std::move(fields).value();
  }

  const bool from_now = from == 0 || options.send_initial_events;
  std::vector<std::vector<ObjectPtr>> initial;
  const std::uint64_t wanted = from;
  if (from_now) initial = registry.snapshots(indexes, options.ns, from);
  if (from_now && wanted > from) return refused_watch(version_too_large(wanted, from));
  auto watch = std::make_unique<RegistryWatch>(registry, selection, mask, from);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    for (auto& object : initial[i]) {
      if (!selection.matches(indexes[i], object)) continue;
      WatchEvent event;
      event.resource = resource_table()[indexes[i]].plural;
      event.object = std::move(object);
      watch->push(std::move(event));
    }
  }
  if (options.send_initial_events) {
    watch->push(WatchEvent{
        .type = WatchEventType::kBookmark, .resource_version = from, .initial_events_end = true});
  }
  return WatchReply{.watch = std::move(watch)};
}

}  // namespace lpp::devcluster
