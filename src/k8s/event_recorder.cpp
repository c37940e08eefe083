#include "k8s/event_recorder.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>
#include <unordered_map>

#include "base/log.h"
#include "base/strings.h"
#include "base/sync.h"
#include "k8s/event_correlator.h"
#include "k8s/leader_elector.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxQueued = 4000;
// Normal Events in a burst of work compete with the work itself: after so many they step back until
// no more come or they have waited long.
constexpr double kNormalBurst = 20;
constexpr double kBusyPerSecond = 5;
constexpr double kLatePerSecond = 20;
constexpr double kQuietPerSecond = 50;
constexpr Duration kQuietAfter = std::chrono::seconds(1);
constexpr Duration kLateAfter = std::chrono::seconds(10);
// Behaviour rule C7.4.
constexpr int kMaxTries = 12;
constexpr Duration kAnsweredInterval = std::chrono::seconds(1);  // it is there, it can be soon
constexpr Duration kRetryInterval = std::chrono::seconds(10);
constexpr std::size_t kMaxName = 253;

/// A DNS-1123 subdomain, as names of Events must be.
bool is_valid_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return false;
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (const std::string_view label : split(name, '.')) {
    if (label.empty() || !alphanumeric(label.front()) || !alphanumeric(label.back())) return false;
    for (const char c : label) {
      if (!alphanumeric(c) && c != '-') return false;
    }
  }
  return true;
}

std::string object_identity(const ObjectReference& about) {
  return fmt::format("{}/{}/{}/{}", about.kind, about.ns, about.name, about.uid);
}

/// No answer, or one that says nothing about the Event: the server is overloaded or in trouble.
bool heals_by_itself(const Error& error) {
  return error.reason != kNotLeader &&
         (error.is(ErrorCode::kTimeout) || error.is(ErrorCode::kUnavailable) ||
          error.is(ErrorCode::kTooManyRequests));
}

/// The namespace is gone or going: nobody will ever look at that Event.
bool namespace_is_ending(const Error& error) {
  return error.is(ErrorCode::kNotFound) ||
         (error.is(ErrorCode::kForbidden) &&
          error.message.find("being terminated") != std::string::npos);
}

}  // namespace

class EventRecorder::Impl {
 public:
  Impl(ApiClient& client, Clock& clock, std::string component)
      : clock_(clock),
        component_(std::move(component)),
        on_client_stop_(client.options().stop, [this] { cancel_.request_stop(); }),
        client_(client.with(cancellable(client.options()))),
        correlator_(clock) {}

  void start() {
    thread_ = std::jthread([this] {
      set_thread_name("events");
      run();
    });
  }

  void stop(Duration limit) {
    const TimePoint deadline = clock_.now() + limit;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
      while (thread_.joinable() && !finished_ && clock_.now() < deadline) {
        clock_.wait_until(changed_, mutex_, deadline);
      }
    }
    cancel_.request_stop();
    if (thread_.joinable()) thread_.join();
    MutexLock lock(mutex_);
    drop_queue();
  }

  void event(EventReport report) {
    std::string identity = report.identity();
    bool overflow = false;
    {
      MutexLock lock(mutex_);
      if (const auto it = waiting_.find(identity); it != waiting_.end()) {
        // The same again while the first still waits: one request for both.
        it->second->count += 1;
        it->second->last = report.last;
        return;
      }
      const bool normal = report.type == EventType::kNormal;
      std::string object = normal ? object_identity(report.about) : std::string();
      if (const auto it = normal_of_.find(object); normal && it != normal_of_.end()) {
        // Still unsent when the next one comes: what happened last is what people ask for.
        waiting_.erase(it->second->identity());
        last_normal_ = clock_.now();
        *it->second = std::move(report);
        waiting_.emplace(std::move(identity), it->second);
        return;
      }
      if (warnings_.size() + normals_.size() < kMaxQueued && !finished_) {
        auto& queue = normal ? normals_ : warnings_;
        if (normal) last_normal_ = clock_.now();
        const auto it = queue.insert(queue.end(), std::move(report));
        waiting_.emplace(std::move(identity), it);
        if (normal) normal_of_.emplace(std::move(object), it);
        overflowed_ = false;
        changed_.notify_all();
      } else {
        count_dropped(1);
        overflow = !finished_ && !std::exchange(overflowed_, true);
      }
    }
    if (overflow) log::warn("events: the queue is full ({}), dropping Events", kMaxQueued);
  }

  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  ApiClient::Options cancellable(ApiClient::Options options) const {
    options.stop = cancel_.get_token();
    return options;
  }

  void run() {
    while (const auto report = next()) deliver(*report);
    MutexLock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  std::optional<EventReport> next() {
    MutexLock lock(mutex_);
    while (true) {
      if (cancel_.stop_requested()) return std::nullopt;
      if (!warnings_.empty()) return pop(warnings_);
      if (!normals_.empty() && (stopping_ || take_token())) {
        normal_of_.erase(object_identity(normals_.front().about));
        return pop(normals_);
      }
      if (stopping_) return std::nullopt;
      clock_.wait_until(changed_, mutex_, normals_.empty() ? TimePoint::max() : next_token());
    }
  }

  EventReport pop(std::list<EventReport>& queue) LPP_REQUIRES(mutex_) {
    EventReport report = std::move(queue.front());
    queue.pop_front();
    waiting_.erase(report.identity());
    return report;
  }

  /// How fast Normal Events may go out; there is at least one.
  double pace(TimePoint now) const LPP_REQUIRES(mutex_) {
    if (now - last_normal_ >= kQuietAfter) return kQuietPerSecond;
    const bool late = clock_.wall_now() - normals_.front().first >= kLateAfter;
    return late ? kLatePerSecond : kBusyPerSecond;
  }

  bool take_token() LPP_REQUIRES(mutex_) {
    const TimePoint now = clock_.now();
    const std::chrono::duration<double> passed = now - refilled_;
    tokens_ = std::min(kNormalBurst, tokens_ + passed.count() * pace(now));
    refilled_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  TimePoint next_token() const LPP_REQUIRES(mutex_) {
    const std::chrono::duration<double> missing((1 - tokens_) / pace(refilled_));
    const TimePoint refilled = refilled_ + std::chrono::ceil<Duration>(missing);
    const TimePoint quiet = last_normal_ + kQuietAfter;
    return quiet > refilled_ ? std::min(refilled, quiet) : refilled;
  }

  /// Sends one Event, again and again while the server cannot take it. Later ones wait meanwhile:
  /// they would not be taken either, and the counts stay in order.
  void deliver(const EventReport& report) {
    auto write = correlator_.correlate(report);
    if (!write) {
      count_dropped(report.count);
      return;
    }
    std::optional<ObjectKey> created_as;
    for (int tries = 1;; ++tries) {
      const auto sent = send(*write, created_as);
      if (sent.ok()) return;
      const Error& error = sent.error();
      const Duration wait =
          error.http_status != 0 ? kAnsweredInterval
          : tries == 1 ? std::chrono::duration_cast<Duration>(kRetryInterval * random_unit())
                       : kRetryInterval;
      if (heals_by_itself(error) && tries < kMaxTries && sleep_unless_stopping(wait)) continue;
      count_dropped(report.count);
      report_loss(*write, error);
      return;
    }
  }

  /// `created_as` is the name under which a create was tried before, if any: with one name for all
  /// tries, a create whose answer was lost cannot store the Event twice.
  Result<void> send(EventWrite& write, std::optional<ObjectKey>& created_as) {
    if (write.of) {
      const auto patched = client_.patch(kEvents, *write.of, PatchType::kStrategicMerge,
                                         event_patch(write.event), {}, Answer::kIdentity);
      if (patched.ok()) return {};
      if (!patched.error().is(ErrorCode::kNotFound)) return patched.error();
      write.of.reset();  // Events expire: make a new one that goes on counting
    }
    const bool repeated = created_as.has_value();
    if (!repeated) created_as = new_key(write.event);
    const auto created =
        client_.create(kEvents, created_as->ns, event_object(write.event, *created_as, component_),
                       Answer::kIdentity);
    if (!created.ok() && !(repeated && created.error().is(ErrorCode::kAlreadyExists))) {
      return created.error();
    }
    correlator_.stored(write, *created_as);
    return {};
  }

  ObjectKey new_key(const EventReport& event) {
    const auto now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall_now().time_since_epoch())
            .count();
    // Never the same twice, however coarse the clock is.
    last_nanos_ = std::max<std::int64_t>(now, last_nanos_ + 1);
    std::string name = fmt::format("{}.{:x}", event.about.name, last_nanos_);
    if (!is_valid_name(name)) name = random_uuid();
    return {event.about.ns.empty() ? "default" : event.about.ns, std::move(name)};
  }

  /// False at once when the recorder is stopping.
  bool sleep_unless_stopping(Duration duration) {
    const TimePoint deadline = clock_.now() + duration;
    MutexLock lock(mutex_);
    while (!stopping_ && clock_.now() < deadline) clock_.wait_until(changed_, mutex_, deadline);
    return !stopping_;
  }

  void report_loss(const EventWrite& write, const Error& error) const {
    const auto text = fmt::format("events: {} {} on {} {}/{} was not stored: {}",
                                  write.event.type == EventType::kWarning ? "Warning" : "Normal",
                                  write.event.reason, write.event.about.kind, write.event.about.ns,
                                  write.event.about.name, log::quoted(error.message));
    if (namespace_is_ending(error) || error.is(ErrorCode::kCancelled)) {
      log::debug("{}", text);
    } else {
      log::warn("{}", text);
    }
  }

  void drop_queue() LPP_REQUIRES(mutex_) {
    for (const auto* queue : {&warnings_, &normals_}) {
      for (const EventReport& report : *queue) count_dropped(report.count);
    }
    warnings_.clear();
    normals_.clear();
    waiting_.clear();
    normal_of_.clear();
    finished_ = true;
  }

  void count_dropped(int count) {
    dropped_.fetch_add(static_cast<std::uint64_t>(count), std::memory_order_relaxed);
  }

  // Constant after construction.
  Clock& clock_;
  const std::string component_;
  std::stop_source cancel_;  // ends the request in progress
  const std::stop_callback<std::function<void()>> on_client_stop_;
  ApiClient client_;

  std::atomic<std::uint64_t> dropped_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  bool finished_ LPP_GUARDED_BY(mutex_) = false;  // nothing is taken from the queue any more
  bool overflowed_ LPP_GUARDED_BY(mutex_) = false;
  std::list<EventReport> warnings_ LPP_GUARDED_BY(mutex_);
  std::list<EventReport> normals_ LPP_GUARDED_BY(mutex_);
  using Places = std::unordered_map<std::string, std::list<EventReport>::iterator>;
  Places waiting_ LPP_GUARDED_BY(mutex_);    // by identity, in either queue
  Places normal_of_ LPP_GUARDED_BY(mutex_);  // by object, in normals_
  double tokens_ LPP_GUARDED_BY(mutex_) = kNormalBurst;
  TimePoint refilled_ LPP_GUARDED_BY(mutex_) = clock_.now();
  TimePoint last_normal_ LPP_GUARDED_BY(mutex_){};  // when one was recorded

  // Used by the thread only.
  EventCorrelator correlator_;
  std::int64_t last_nanos_ = 0;

  std::jthread thread_;
};

EventRecorder::EventRecorder(ApiClient& client, Clock& clock, std::string component)
    : clock_(clock), impl_(std::make_unique<Impl>(client, clock, std::move(component))) {}

EventRecorder::~EventRecorder() { stop(Duration::zero()); }

void EventRecorder::start() { impl_->start(); }

void EventRecorder::stop(Duration limit) { impl_->stop(limit); }

void EventRecorder::event(const ObjectReference& about, EventType type, std::string_view reason,
                          std::string message) {
  const auto now = clock_.wall_now();
  message.resize(truncate_utf8(message, kMaxEventMessage).size());
  impl_->event(EventReport{.about = about,
                           .type = type,
                           .reason = std::string(reason),
                           .message = std::move(message),
                           .first = now,
                           .last = now});
}

std::uint64_t EventRecorder::dropped() const { return impl_->dropped(); }

}  // namespace lpp::k8s
