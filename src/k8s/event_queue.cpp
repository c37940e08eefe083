// SPDX-License-Identifier: Apache-2.0
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
    report.ns = it->second->report.ns;  // where it is
    it->second->report = std::move(report);
    waiting_.emplace(std::move(identity), it->second);
    return true;
  }
  if (size_ >= kMax) return false;
  drop_idle_lines();
  Line& line = line_of(report);
  if (line.places >= kMaxOfNamespace) return false;
  ++size_;
  ++line.places;
  if (normal) last_normal_ = clock_.now();
  auto& list = normal ? line.normals : line.warnings;
  const auto at = list.insert(list.end(), QueuedEvent{.report = std::move(report)});
  waiting_.emplace(std::move(identity), at);
  if (normal) normal_of_.emplace(std::move(object), at);
  return true;
}

std::optional<QueuedEvent> EventQueue::take(bool hurry) {
  const TimePoint now = clock_.now();
  const auto may = [&](const Line& line) { return hurry || line.may_send(now); };
  if (Line* const line = next_line([&](const Line& l) { return !l.warnings.empty() && may(l); })) {
    return take(*line, line->warnings, hurry);
  }
  const auto has_due = [&](const Line& line) {
    return !line.again.empty() && (hurry || line.again.front().due <= now) && may(line);
  };
  if (Line* const line = next_line(has_due)) return take(*line, line->again, hurry);
  if (Line* const line = next_line([&](const Line& l) { return !l.normals.empty() && may(l); });
      line != nullptr && (hurry || take_token())) {
    return take(*line, line->normals, hurry);
  }
  return std::nullopt;
}

TimePoint EventQueue::next_take() const {
  TimePoint next = TimePoint::max();
  TimePoint next_normal = TimePoint::max();
  for (const auto& [ns, line] : lines_) {
    const TimePoint paced = line.next();
    if (!line.warnings.empty()) next = std::min(next, paced);
    if (!line.again.empty()) next = std::min(next, std::max(paced, line.again.front().due));
    if (!line.normals.empty()) next_normal = std::min(next_normal, paced);
  }
  if (next_normal == TimePoint::max() || !refilled_) return std::min(next, next_normal);
  const std::chrono::duration<double> missing((1 - tokens_) / pace(*refilled_));
  TimePoint token = *refilled_ + std::chrono::ceil<Duration>(missing);
  const TimePoint quiet = last_normal_ + kQuietAfter;
  if (quiet > *refilled_) token = std::min(token, quiet);
  return std::min(next, std::max(token, next_normal));
}

void EventQueue::put_back(QueuedEvent event) {
  std::string identity = event.report.identity();
  if (const auto it = waiting_.find(identity); it != waiting_.end()) {
    const QueuedEvent newer = remove(it->second);
    event.add(newer.report);
    free_place(newer.report);
  }
  Events& again = line_of(event.report).again;
  const auto after = std::find_if(again.rbegin(), again.rend(),
                                  [&](const QueuedEvent& other) { return other.due <= event.due; });
  const auto at = again.insert(after.base(), std::move(event));
  waiting_.emplace(std::move(identity), at);
}

void EventQueue::hold_namespace(const EventReport& report, TimePoint until) {
  line_of(report).held_until = until;
}

std::size_t EventQueue::clear() {
  std::size_t reports = 0;
  for (const auto& [ns, line] : lines_) {
    for (const Events* list : {&line.warnings, &line.normals, &line.again}) {
      for (const QueuedEvent& event : *list) {
        reports += static_cast<std::size_t>(event.report.count);
      }
    }
  }
  lines_.clear();
  waiting_.clear();
  normal_of_.clear();
  size_ = 0;
  return reports;
}

EventQueue::Events& EventQueue::Line::list_of(const QueuedEvent& event) {
  if (event.tries > 0) return again;
  return is_normal(event.report) ? normals : warnings;
}

EventQueue::Line& EventQueue::line_of(const EventReport& report) {
  const auto [it, is_new] = lines_.try_emplace(report.ns);
  if (is_new) it->second.turn = ++last_turn_;
  return it->second;
}

template <typename Has>
EventQueue::Line* EventQueue::next_line(const Has& has) {
  Line* next = nullptr;
  for (auto& [ns, line] : lines_) {
    if (has(line) && (next == nullptr || line.turn < next->turn)) next = &line;
  }
  return next;
}

QueuedEvent EventQueue::take(Line& line, Events& list, bool hurry) {
  line.turn = ++last_turn_;
  if (!hurry) line.pace.take(clock_.now());
  return remove(list.begin());
}

QueuedEvent EventQueue::remove(Events::iterator at) {
  Line& line = line_of(at->report);
  Events& list = line.list_of(*at);
  if (&list == &line.normals) normal_of_.erase(object_identity(at->report.about));
  waiting_.erase(at->report.identity());
  QueuedEvent event = std::move(*at);
  list.erase(at);
  return event;
}

void EventQueue::free_place(const EventReport& report) {
  --size_;
  --line_of(report).places;
}

void EventQueue::drop_idle_lines() {
  const TimePoint now = clock_.now();
  std::erase_if(lines_, [&](const auto& entry) {
    return entry.second.places == 0 && entry.second.pace.full(now);
  });
}

/// How fast Normal Events may go out.
double EventQueue::pace(TimePoint now) const {
  if (now - last_normal_ >= kQuietAfter) return kQuietPerSecond;
  const auto wall_now = clock_.wall_now();
  const bool late = std::any_of(lines_.begin(), lines_.end(), [&](const auto& entry) {
    const Events& normals = entry.second.normals;
    return !normals.empty() && wall_now - normals.front().report.first >= kLateAfter;
  });
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
