// SPDX-License-Identifier: Apache-2.0
#include "k8s/event_recorder.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/on_behalf_of.h"
#include "base/strings.h"
#include "base/sync.h"
#include "k8s/event_correlator.h"
#include "k8s/event_queue.h"
#include "k8s/fenced_transport.h"
#include "text/dns_names.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;

// A try that failed is repeated after a back-off per Event, which doubles; the server's own trouble
// holds back all of them, or each would find out for itself.
constexpr Duration kFirstWait = std::chrono::seconds(1);
constexpr Duration kMaxWait = std::chrono::minutes(1);
constexpr Duration kMaxPause = std::chrono::seconds(10);
constexpr std::chrono::seconds kLongestRetryAfter{120};
// The API server would have forgotten it after that, too.
constexpr std::chrono::hours kKept{1};
// A namespace that is not there is either just being made or gone for good.
constexpr int kTriesWithoutNamespace = 6;
/// That Events are dropped is not said more often.
constexpr Duration kOverflowTold = std::chrono::minutes(1);

/// The namespace is going: nobody will ever look at that Event.
bool namespace_is_ending(const Error& error) {
  return error.is(ErrorCode::kForbidden) &&
         error.message.find("being terminated") != std::string::npos;
}

/// Whether another try of the same Event can succeed. Rights come and go, also by themselves: an
/// API server that has just started knows no roles yet.
bool may_heal(const Error& error, int tries) {
  switch (error.code) {
    case ErrorCode::kTimeout:
    case ErrorCode::kUnavailable: return error.reason != kNotLeader;
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kConflict:
    case ErrorCode::kAlreadyExists: return true;
    case ErrorCode::kForbidden: return !namespace_is_ending(error);
    case ErrorCode::kNotFound: return tries < kTriesWithoutNamespace;
    default: return false;
  }
}

/// No answer, or one that says nothing about the Event: others would fare no better.
bool is_servers_trouble(const Error& error) {
  return error.is(ErrorCode::kTimeout) || error.is(ErrorCode::kUnavailable) ||
         error.is(ErrorCode::kUnauthorized);
}

/// The server has looked at it and did not store it.
bool was_refused(const Error& error) { return error.http_status != 0 && error.http_status < 500; }

Duration doubled(Duration first, int times, Duration most) {
  Duration wait = first;
  for (int i = 0; i < times && wait < most; ++i) wait *= 2;
  return std::min(wait, most);
}

EventReport report_of(const ObjectReference& about, EventType type, std::string_view reason,
                      std::string message, std::chrono::system_clock::time_point now) {
  message.resize(truncate_utf8(message, kMaxEventMessage).size());
  return {.about = about,
          .type = type,
          .reason = std::string(reason),
          .message = std::move(message),
          .first = now,
          .last = now,
          // A volume's counts for the namespace whose claim it was made for.
          .ns = about.ns.empty() ? std::string(OnBehalfOf::current()) : about.ns};
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

  void event(const EventReport& report) {
    bool overflow = false;
    const TimePoint now = clock_.now();
    {
      MutexLock lock(mutex_);
      if (!finished_ && queue_.add(report)) {
        changed_.notify_all();
        return;
      }
      overflow = !finished_ && (!overflow_told_ || now >= *overflow_told_ + kOverflowTold);
      if (overflow) overflow_told_ = now;
      drop(report);
    }
    if (overflow) {
      log::warn("events: the queue is full ({}, or {} of one namespace), dropping Events",
                EventQueue::kMax, EventQueue::kMaxOfNamespace);
    }
  }

  /// Its name is made of what it says: stored twice it is one object.
  Result<void> store(const EventReport& report) {
    const std::string& ns = report.about.ns;
    const ObjectKey key{ns.empty() ? "default" : ns,
                        "event-" + short_hash(report.identity() + "/" + report.about.uid)};
    const auto created =
        client_.create(kEvents, key.ns, event_object(report, key, component_), Answer::kIdentity);
    if (created.ok() || created.error().is(ErrorCode::kAlreadyExists)) return {};
    return created.error();
  }

  void on_dropped(DroppedHook hook) { hook_ = std::move(hook); }

  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  /// An Event that was given up, for the hook.
  struct Dropped {
    ObjectReference about;
    std::string reason;
    std::string message;
  };

  ApiClient::Options cancellable(ApiClient::Options options) const {
    options.stop = cancel_.get_token();
    return options;
  }

  void run() {
    while (true) {
      tell_dropped();
      std::optional<QueuedEvent> event;
      {
        MutexLock lock(mutex_);
        if (cancel_.stop_requested()) break;
        const bool paused = !stopping_ && clock_.now() < paused_until_;
        if (!paused) event = queue_.take(stopping_);
        if (!event) {
          if (stopping_) break;
          if (notices_.empty()) {
            clock_.wait_until(changed_, mutex_, paused ? paused_until_ : queue_.next_take());
          }
          continue;
        }
      }
      deliver(*std::move(event));
    }
    tell_dropped();
    MutexLock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  void deliver(QueuedEvent event) {
    if (event.write) {
      correlator_.refresh(*event.write);
    } else {
      event.write = correlator_.correlate(event.report);
    }
    if (!event.write) return give_up(event);  // a flood about one object
    const auto sent = send(event);
    if (!sent.ok()) return failed(std::move(event), sent.error());
    failures_in_a_row_ = 0;
    said_ = false;
    MutexLock lock(mutex_);
    queue_.done(event);
  }

  void failed(QueuedEvent event, const Error& error) {
    ++event.tries;
    const bool too_old = clock_.wall_now() - event.report.last > kKept;
    if (is_stopping() || too_old || !may_heal(error, event.tries)) {
      const bool expected = namespace_is_ending(error) || error.is(ErrorCode::kNotFound) ||
                            error.is(ErrorCode::kCancelled);
      report_loss(*event.write, error, expected, "");
      return give_up(event);
    }
    report_loss(*event.write, error, std::exchange(said_, true), ", it is tried again");
    const TimePoint now = clock_.now();
    Duration wait = doubled(kFirstWait, event.tries - 1, kMaxWait);
    wait += std::chrono::duration_cast<Duration>(wait * (0.2 * random_unit()));
    if (error.retry_after) {
      wait = std::max<Duration>(wait, std::min(*error.retry_after, kLongestRetryAfter));
    }
    event.due = now + wait;
    // A server may limit each namespace; when it is the server that has too much to do, the others
    // find out for themselves.
    const bool of_namespace = error.is(ErrorCode::kTooManyRequests);
    const TimePoint held_until = now + doubled(kFirstWait, event.tries - 1, kMaxPause);
    if (is_servers_trouble(error)) {
      paused_until_ = now + doubled(kFirstWait, failures_in_a_row_++, kMaxPause);
    }
    if (was_refused(error)) event.created_as.reset();
    MutexLock lock(mutex_);
    if (of_namespace) queue_.hold_namespace(event.report, held_until);
    queue_.put_back(std::move(event));
  }

  /// With one name for all tries, a create whose answer was lost cannot store the Event twice.
  Result<void> send(QueuedEvent& event) {
    EventWrite& write = *event.write;
    std::optional<ObjectKey>& created_as = event.created_as;
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
    if (!text::is_dns_subdomain(name)) name = random_uuid();
    return {event.about.ns.empty() ? "default" : event.about.ns, std::move(name)};
  }

  static void report_loss(const EventWrite& write, const Error& error, bool quietly,
                          std::string_view more) {
    const auto text = fmt::format("events: {} {} on {} {}/{} was not stored: {}{}",
                                  write.event.type == EventType::kWarning ? "Warning" : "Normal",
                                  write.event.reason, write.event.about.kind, write.event.about.ns,
                                  write.event.about.name, log::quoted(error.message), more);
    if (quietly) {
      log::debug("{}", text);
    } else {
      log::warn("{}", text);
    }
  }

  bool is_stopping() const {
    MutexLock lock(mutex_);
    return stopping_;
  }

  void give_up(const QueuedEvent& event) {
    MutexLock lock(mutex_);
    queue_.done(event);
    drop(event.report);
  }

  void drop(const EventReport& report) LPP_REQUIRES(mutex_) {
    dropped_.fetch_add(static_cast<std::uint64_t>(report.count), std::memory_order_relaxed);
    if (!hook_ || finished_) return;
    if (notices_.size() < EventQueue::kMax) {
      notices_.push_back(
          {.about = report.about, .reason = report.reason, .message = report.message});
    } else {
      notices_.assign(1, Dropped{});  // stands for all of them
    }
    changed_.notify_all();
  }

  /// On the thread, without any lock: the hook may record Events.
  void tell_dropped() {
    std::vector<Dropped> dropped;
    {
      MutexLock lock(mutex_);
      dropped = std::exchange(notices_, {});
    }
    for (const Dropped& event : dropped) hook_(event.about, event.reason, event.message);
  }

  void drop_queue() LPP_REQUIRES(mutex_) {
    dropped_.fetch_add(queue_.clear(), std::memory_order_relaxed);
    finished_ = true;
  }

  // Constant after construction.
  Clock& clock_;
  const std::string component_;
  std::stop_source cancel_;  // ends the request in progress
  const std::stop_callback<std::function<void()>> on_client_stop_;
  ApiClient client_;
  DroppedHook hook_;  // constant after start()

  std::atomic<std::uint64_t> dropped_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  bool finished_ LPP_GUARDED_BY(mutex_) = false;  // nothing is taken from the queue any more
  std::optional<TimePoint> overflow_told_ LPP_GUARDED_BY(mutex_);
  EventQueue queue_ LPP_GUARDED_BY(mutex_){clock_};
  std::vector<Dropped> notices_ LPP_GUARDED_BY(mutex_);  // what the hook has still to hear of

  // Used by the thread only.
  bool said_ = false;          // that Events are not stored, since the last one that was
  int failures_in_a_row_ = 0;  // the server's
  TimePoint paused_until_ = TimePoint::min();
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
  impl_->event(report_of(about, type, reason, std::move(message), clock_.wall_now()));
}

Result<void> EventRecorder::store(const ObjectReference& about, EventType type,
                                  std::string_view reason, std::string message) {
  auto report = report_of(about, type, reason, std::move(message), clock_.wall_now());
  auto stored = impl_->store(report);
  if (!stored.ok() && !about.ns.empty() &&
      (namespace_is_ending(stored.error()) || stored.error().is(ErrorCode::kNotFound))) {
    report.message = fmt::format("{} {}: {}", about.kind, about.name, report.message);
    report.message.resize(truncate_utf8(report.message, kMaxEventMessage).size());
    report.about = {
        .kind = "Namespace", .api_version = "v1", .ns = {}, .name = about.ns, .uid = {}};
    stored = impl_->store(report);
  }
  if (stored.ok() || is_servers_trouble(stored.error()) ||
      stored.error().is(ErrorCode::kTooManyRequests) || stored.error().is(ErrorCode::kCancelled)) {
    return stored;
  }
  impl_->event(report);
  return {};
}

void EventRecorder::on_dropped(DroppedHook hook) { impl_->on_dropped(std::move(hook)); }

std::uint64_t EventRecorder::dropped() const { return impl_->dropped(); }

}  // namespace lpp::k8s
