// SPDX-License-Identifier: Apache-2.0
#include "k8s/event_correlator.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;

constexpr std::size_t kSimilarMax = 10;
constexpr Duration kSimilarInterval = std::chrono::seconds(600);
constexpr double kSpamBurst = 25;
constexpr double kSpamPerSecond = 1.0 / 300;
constexpr std::string_view kCombined = "(combined from similar events): ";

std::string_view name_of(EventType type) {
  return type == EventType::kWarning ? "Warning" : "Normal";
}

/// Fields joined by a character that none of them can hold.
template <typename... Texts>
std::string join(const Texts&... texts) {
  std::string joined;
  ((joined += texts, joined += '\0'), ...);
  return joined;
}

std::string object_and_type(const EventReport& report) {
  const ObjectReference& about = report.about;
  return join(about.kind, about.api_version, about.ns, about.name, about.uid, name_of(report.type));
}

int add_counts(int a, int b) {
  constexpr int kMax = std::numeric_limits<std::int32_t>::max();
  return b > kMax - a ? kMax : a + b;
}

}  // namespace

std::string EventReport::identity() const {
  // The hash keeps keys short however long the messages are.
  return join(object_and_type(*this), reason, short_hash(message));
}

EventCorrelator::EventCorrelator(Clock& clock, std::size_t capacity)
    : clock_(clock), similar_(capacity), stored_(capacity), buckets_(capacity) {}

std::optional<EventWrite> EventCorrelator::correlate(const EventReport& report) {
  EventWrite write{.event = report, .key = report.identity(), .of = {}};
  if (is_one_of_many(report)) {
    write.key = join(object_and_type(report), report.reason);
    write.event.message = truncate_utf8(std::string(kCombined) + report.message, kMaxEventMessage);
  }
  Stored& stored = stored_.at(write.event.ns, write.key);
  if (stored.count == 0) stored.first = report.first;
  stored.count = add_counts(stored.count, report.count);
  write.event.count = stored.count;
  write.event.first = stored.first;
  write.of = stored.where;
  // Counted even when it is not sent: the next one that passes tells the true number.
  if (!take_token(report)) return std::nullopt;
  return write;
}

void EventCorrelator::refresh(EventWrite& write) {
  const Stored& stored = stored_.at(write.event.ns, write.key);
  if (!stored.where) return;
  write.of = stored.where;
  write.event.count = std::max(write.event.count, stored.count);
  write.event.first = stored.first;
}

void EventCorrelator::stored(const EventWrite& write, const ObjectKey& where) {
  Stored& stored = stored_.at(write.event.ns, write.key);
  stored.where = where;
  // The entry may have been forgotten in between.
  stored.count = std::max(stored.count, write.event.count);
  stored.first = write.event.first;
}

bool EventCorrelator::is_one_of_many(const EventReport& report) {
  Similar& similar = similar_.at(report.ns, join(object_and_type(report), report.reason));
  const TimePoint now = clock_.now();
  if (similar.last && now - *similar.last > kSimilarInterval) similar.messages.clear();
  similar.last = now;
  std::string message = short_hash(report.message);
  if (similar.messages.contains(message)) return false;
  if (similar.messages.size() + 1 >= kSimilarMax) return true;
  similar.messages.insert(std::move(message));
  return false;
}

bool EventCorrelator::take_token(const EventReport& report) {
  auto& bucket = buckets_.at(report.ns, object_and_type(report));
  if (!bucket) bucket.emplace(kSpamBurst, kSpamPerSecond);
  return bucket->take(clock_.now());
}

json event_object(const EventReport& event, const ObjectKey& key, std::string_view component) {
  json about = {{"kind", event.about.kind},
                {"apiVersion", event.about.api_version},
                {"name", event.about.name},
                {"uid", event.about.uid}};
  if (!event.about.ns.empty()) about["namespace"] = event.about.ns;
  if (!event.about.resource_version.empty()) {
    about["resourceVersion"] = event.about.resource_version;
  }
  return {{"apiVersion", kEvents.api_version()},
          {"kind", kEvents.kind},
          {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
          {"involvedObject", std::move(about)},
          {"type", name_of(event.type)},
          {"reason", event.reason},
          {"message", event.message},
          {"count", event.count},
          {"firstTimestamp", format_rfc3339(event.first)},
          {"lastTimestamp", format_rfc3339(event.last)},
          {"source", {{"component", component}}},
          {"reportingComponent", component},
          {"reportingInstance", ""}};
}

json event_patch(const EventReport& event) {
  return {{"count", event.count},
          {"lastTimestamp", format_rfc3339(event.last)},
          {"message", event.message}};
}

}  // namespace lpp::k8s
