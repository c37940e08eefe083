#include "k8s/event_queue.h"

#include <algorithm>

#include "base/log.h"

namespace lpp::k8s {

namespace {

// Normal Events in a burst of work compete with the work itself: after so many they step back until
// no more come or they have waited long.
constexpr double kNormalBurst = 20;
constexpr double kBusyPerSecond = 5;
constexpr double kLatePerSecond = 20;
constexpr double kQuietPerSecond = 50;
constexpr Duration kQuietAfter = std::chrono::seconds(1);
constexpr Duration kLateAfter = std::chrono::seconds(10);

std::string object_identity(const ObjectReference& about) {
  return fmt::format("{}/{}/{}/{}", about.kind, about.ns, about.name, about.uid);
}

bool is_normal(const EventReport& report) { return report.type == EventType::kNormal; }

}  // namespace

void QueuedEvent::add(const EventReport& again) {
  report.count += again.count;
  report.last = again.last;
  if (!write) return;
  write->event.count += again.count;
  write->event.last = again.last;
}

bool EventQueue::add(EventReport report) {
  std::string identity = report.identity();
  if (const auto it = waiting_.find(identity); it != waiting_.end()) {
    // The same again while the first still waits: one request for both.
    it->second->add(report);
    return true;
  }
  const bool normal = is_normal(report);
  std::string object = normal ? object_identity(report.about) : std::string();
  if (const auto it = normal_of_.find(object); normal && it != normal_of_.end()) {
    // Still unsent when the next one comes: what happened last is what people ask for.
    waiting_.erase(it->second->report.identity());
    last_normal_ = clock_.now();
    it->second->report = std::move(report);
    waiting_.emplace(std::move(identity), it->second);
    return true;
  }
  if (size_ >= kMax) return false;
  const auto of_namespace = of_namespace_.find(report.about.ns);
  if (of_namespace != of_namespace_.end() && of_namespace->second >= kMaxOfNamespace) return false;
  ++size_;
  ++of_namespace_[report.about.ns];
  if (normal) last_normal_ = clock_.now();
  auto& list = normal ? normals_ : warnings_;
  const auto at = list.insert(list.end(), QueuedEvent{.report = std::move(report)});
  waiting_.emplace(std::move(identity), at);
  if (normal) normal_of_.emplace(std::move(object), at);
  return true;
}

std::optional<QueuedEvent> EventQueue::take(bool hurry) {
  if (!warnings_.empty()) return remove(warnings_.begin());
  if (!again_.empty() && (hurry || again_.front().due <= clock_.now())) {
    return remove(again_.begin());
  }
  if (!normals_.empty() && (hurry || take_token())) return remove(normals_.begin());
  return std::nullopt;
}

TimePoint EventQueue::next_take() const {
  TimePoint next = again_.empty() ? TimePoint::max() : again_.front().due;
  if (normals_.empty() || !refilled_) return next;
  const std::chrono::duration<double> missing((1 - tokens_) / pace(*refilled_));
  next = std::min(next, *refilled_ + std::chrono::ceil<Duration>(missing));
  const TimePoint quiet = last_normal_ + kQuietAfter;
  return quiet > *refilled_ ? std::min(next, quiet) : next;
}

void EventQueue::put_back(QueuedEvent event) {
  std::string identity = event.report.identity();
  if (const auto it = waiting_.find(identity); it != waiting_.end()) {
    const QueuedEvent newer = remove(it->second);
    event.add(newer.report);
    free_place(newer.report);
  }
  const auto after = std::find_if(again_.rbegin(), again_.rend(),
                                  [&](const QueuedEvent& other) { return other.due <= event.due; });
  const auto at = again_.insert(after.base(), std::move(event));
  waiting_.emplace(std::move(identity), at);
}

std::size_t EventQueue::clear() {
  std::size_t reports = 0;
  for (Events* list : {&warnings_, &normals_, &again_}) {
    for (const QueuedEvent& event : *list) reports += static_cast<std::size_t>(event.report.count);
    list->clear();
  }
  waiting_.clear();
  normal_of_.clear();
  of_namespace_.clear();
  size_ = 0;
  return reports;
}

EventQueue::Events& EventQueue::list_of(const QueuedEvent& event) {
  if (event.tries > 0) return again_;
  return is_normal(event.report) ? normals_ : warnings_;
}

QueuedEvent EventQueue::remove(Events::iterator at) {
  Events& list = list_of(*at);
  if (&list == &normals_) normal_of_.erase(object_identity(at->report.about));
  waiting_.erase(at->report.identity());
  QueuedEvent event = std::move(*at);
  list.erase(at);
  return event;
}

void EventQueue::free_place(const EventReport& report) {
  --size_;
  const auto it = of_namespace_.find(report.about.ns);
  if (it != of_namespace_.end() && --it->second == 0) of_namespace_.erase(it);
}

/// How fast Normal Events may go out; there is at least one.
double EventQueue::pace(TimePoint now) const {
  if (now - last_normal_ >= kQuietAfter) return kQuietPerSecond;
  const bool late = clock_.wall_now() - normals_.front().report.first >= kLateAfter;
  return late ? kLatePerSecond : kBusyPerSecond;
}

bool EventQueue::take_token() {
  const TimePoint now = clock_.now();
  if (!refilled_) {
    tokens_ = kNormalBurst;
  } else {
    const std::chrono::duration<double> passed = now - *refilled_;
    tokens_ = std::min(kNormalBurst, tokens_ + passed.count() * pace(now));
  }
  refilled_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace lpp::k8s
