// SPDX-License-Identifier: Apache-2.0
#include "k8s/reflector.h"

#include <malloc.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "k8s/json_reader.h"
#include "k8s/object_reader.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;
using std::chrono::seconds;

// Behaviour rule C4.6.
constexpr Duration kBackoffBase = std::chrono::milliseconds(800);
constexpr Duration kBackoffCap = seconds(30);
constexpr Duration kBackoffReset = std::chrono::minutes(2);
// A server that asks for more is not obeyed: the cache would be stale for too long.
constexpr seconds kMaxRetryAfter{120};
// A watch shorter than this and without any frame is a failure, not an end (rule C4.5).
constexpr Duration kShortWatch = seconds(1);
constexpr int kTriesBeforeList = 5;  // of a watch that is answered with 5xx
constexpr seconds kMinWatchTimeout{300};
constexpr std::size_t kWatchTimeoutSpread = 301;

// The API server holds all of a page at once, and must send it within the call's deadline.
constexpr std::size_t kPageBytes = std::size_t{8} << 20U;

Error bad_frame(std::string_view why, std::string_view bytes) {
  return Error{
      .code = ErrorCode::kInternal,
      .message = fmt::format("{}: {}", why, log::quoted(truncate_utf8(bytes.substr(0, 200), 120)))};
}

/// A token that either of two others triggers.
class EitherStop {
 public:
  EitherStop(const std::stop_token& a, const std::stop_token& b)
      : on_a_(a, Forward{source_}), on_b_(b, Forward{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Forward {
    std::stop_source& source;
    void operator()() const { source.request_stop(); }
  };
  std::stop_source source_;
  const std::stop_callback<Forward> on_a_;
  const std::stop_callback<Forward> on_b_;
};

/// An ERROR frame carries a Status under HTTP status 200 (rule C4.4).
Error error_from_status(const json& status) {
  int code = 500;
  if (const auto it = status.find("code"); it != status.end() && it->is_number_integer()) {
    code = it->get<int>();
  }
  const auto reason = status.find("reason");
  if (reason != status.end() && (*reason == "Expired" || *reason == "Gone")) code = 410;
  return error_from_response(
      Response{.status = code, .body = status.dump(), .content_type = "application/json"});
}

}  // namespace

Reflector::Reflector(ApiClient& client, Clock& clock, ReflectorOptions options, ReflectorSink& sink)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      sink_(sink),
      page_size_(options_.page_size) {}

void Reflector::run(const std::stop_token& stop) {
  while (!stop.stop_requested() && !client_.options().stop.stop_requested()) {
    const Duration wait = step(stop);
    if (wait > Duration::zero()) clock_.sleep_for(wait, EitherStop(stop, wake_token()).token());
  }
}

Duration Reflector::step(const std::stop_token& stop) {
  stats_.last_progress.store(clock_.now(), std::memory_order_relaxed);
  const std::stop_token wake = begin_step();
  return std::holds_alternative<Watching>(state_) ? watch(stop, wake) : list_page(stop, wake);
}

std::stop_token Reflector::begin_step() {
  MutexLock lock(mutex_);
  if (wake_.stop_requested()) wake_ = std::stop_source();
  if (began_ < wanted_ && !std::holds_alternative<Empty>(state_)) state_ = Empty{};
  return wake_.get_token();
}

Duration Reflector::list_page(const std::stop_token& stop, const std::stop_token& wake) {
  if (std::holds_alternative<Empty>(state_)) begin_list();
  auto& listing = std::get<Listing>(state_);
  const auto page = request_page(listing, EitherStop(stop, wake).token());
  if (!page.ok()) return list_failed(page.error());
  begin_once(listing);
  adapt_page_size(*page);
  listing.continue_token = page->continue_token;
  if (!listing.continue_token.empty()) return Duration::zero();
  enter_sink();
  sink_.list_end();
  leave_sink();
  malloc_trim(0);  // a list needs more memory for a moment than what it leaves
  state_ = Watching{page->resource_version};
  MutexLock lock(mutex_);
  listed_.store(began_, std::memory_order_release);
  return Duration::zero();
}

void Reflector::begin_list() {
  state_ = Listing{
      .in_one_piece = std::get<Empty>(state_).in_one_piece, .continue_token = {}, .begun = false};
  stats_.lists.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  began_ = clock_.now();
}

Result<ListPage> Reflector::request_page(Listing& listing, const std::stop_token& stop) {
  // Without a version, always: the server honours `limit` only then (rule C3.2), so no more than a
  // page is ever held; and nothing is older than what was seen before.
  const ListOptions options{.label_selector = options_.label_selector,
                            .field_selector = options_.field_selector,
                            .limit = listing.in_one_piece ? 0 : page_size_,
                            .continue_token = listing.continue_token,
                            .metadata_only = options_.metadata_only,
                            .projection = options_.projection};

  // Our stop ends the request too, not only the client's.
  const EitherStop either(stop, client_.options().stop);
  ApiClient::Options client_options = client_.options();
  client_options.stop = either.token();
  return client_.with(std::move(client_options))
      .list_each(options_.resource, options_.ns, options, [&](Value item) {
        begin_once(listing);
        enter_sink();
        sink_.list_item(item);
        leave_sink();
      });
}

void Reflector::begin_once(Listing& listing) {
  if (!std::exchange(listing.begun, true)) sink_.list_begin();
}

void Reflector::adapt_page_size(const ListPage& page) {
  if (page.items == 0) return;
  const std::size_t each = page.bytes / page.items + 1;
  const auto room = std::min<std::size_t>(kPageBytes / each, std::numeric_limits<int>::max());
  page_size_ = std::clamp(static_cast<int>(room), 1, options_.page_size);
}

Duration Reflector::list_failed(const Error& error) {
  const auto& listing = std::get<Listing>(state_);
  const bool in_one_piece = listing.in_one_piece;
  const bool is_first = listing.continue_token.empty();
  if (error.is(ErrorCode::kCancelled)) {
    if (is_first) state_ = Empty{.in_one_piece = in_one_piece};
    return Duration::zero();
  }
  // Perhaps it was too much for the time that it may take.
  if (!in_one_piece && error.is(ErrorCode::kTimeout)) page_size_ = std::max(page_size_ / 2, 1);
  if (!is_first && (error.is(ErrorCode::kExpired) || error.is(ErrorCode::kInvalid))) {
    // The rest of the list is gone. What was collected belongs to a state that can no longer be
    // completed: drop it and ask for everything in one piece (rule C3.3).
    state_ = Empty{.in_one_piece = true};
    return report("list, next page", error, Duration::zero());
  }
  // A page that failed is asked for again: its token stays valid for minutes. A list in one piece
  // was worth one try: it may be more than the server can give, or we can take.
  if (is_first) state_ = Empty{};
  return report("list", error, next_backoff(error));
}

Duration Reflector::watch(const std::stop_token& stop, const std::stop_token& wake) {
  stats_.watches.fetch_add(1, std::memory_order_relaxed);
  frames_ = 0;
  frame_error_.reset();
  const WatchOptions options{
      .label_selector = options_.label_selector,
      .field_selector = options_.field_selector,
      .resource_version = std::get<Watching>(state_).resource_version,
      .timeout = kMinWatchTimeout + seconds(random_below(kWatchTimeoutSpread)),
      .metadata_only = options_.metadata_only,
      .protobuf = !options_.projection.empty()};
  const TimePoint started = clock_.now();
  const auto result = client_.watch(
      options_.resource, options_.ns, options,
      [this](std::string_view frame) { return on_frame(frame); }, EitherStop(stop, wake).token());
  const Duration lived = clock_.now() - started;
  if (stop.stop_requested() || wake.stop_requested()) return Duration::zero();
  if (frame_error_) return watch_failed(*frame_error_, lived);
  if (!result.ok()) return watch_failed(result.error(), lived);
  if (frames_ == 0 && lived < kShortWatch) {
    return watch_failed(Error{.code = ErrorCode::kUnavailable,
                              .message = "ended within a second and without any event"},
                        lived);
  }
  expired_before_ = false;
  return Duration::zero();
}

bool Reflector::on_frame(std::string_view bytes) {
  if (trim(bytes).empty()) return true;
  const Value frame = read_frame(bytes, options_.projection, frame_);
  const auto refuse = [&](std::string_view why) {
    frame_error_ = bad_frame(why, bytes);
    return false;
  };
  if (!frame.is_object()) return refuse("a frame cannot be read");
  const Value object = frame.find("object");
  if (!frame.find("type").is_text() || !object.is_object()) {
    return refuse("a frame has no type or no object");
  }
  const std::string_view type = frame.find("type").text();
  if (type == "ERROR") {
    frame_error_ = error_from_status(to_json(object));
    return false;
  }
  const std::string_view version = object.find("metadata").find("resourceVersion").text();
  if (version.empty()) return refuse("a frame has no resourceVersion");
  ++frames_;
  expired_before_ = false;
  const bool is_applied = type == "ADDED" || type == "MODIFIED";
  if (is_applied || type == "DELETED") {
    stats_.events.fetch_add(1, std::memory_order_relaxed);
    enter_sink();
    is_applied ? sink_.applied(object) : sink_.deleted(object);
    leave_sink();
  } else {
    note_contact();
    if (type != "BOOKMARK") return refuse("a frame has an unknown type");
  }
  std::get<Watching>(state_).resource_version = version;
  return true;
}

Duration Reflector::watch_failed(const Error& error, Duration lived) {
  switch (error.code) {
    case ErrorCode::kCancelled: return Duration::zero();
    case ErrorCode::kExpired: {
      // A list at once, unless that did not help: a server that keeps saying "expired" must not be
      // hammered.
      state_ = Empty{};
      const bool again = std::exchange(expired_before_, true);
      return report("version expired, listing again", error,
                    again ? next_backoff(error) : Duration::zero());
    }
    case ErrorCode::kTooManyRequests: return report("watch", error, next_backoff(error));
    case ErrorCode::kTimeout:
    case ErrorCode::kUnavailable:
      // Nothing says that our version is not good any more. A server in trouble, which says so with
      // a status, is not helped by having to give us everything; only if it goes on, the watch
      // itself may be the trouble.
      if (error.http_status != 0 && failures_in_a_row_ >= kTriesBeforeList) break;
      // A connection that was cut after it had been of use is made again at once.
      if (error.http_status == 0 && lived >= kShortWatch && frames_ > 0) {
        return report("watch", error, Duration::zero());
      }
      return report("watch", error, next_backoff(error));
    default: break;
  }
  state_ = Empty{};
  return report("watch", error, next_backoff(error));
}

Duration Reflector::next_backoff(const Error& error) {
  const TimePoint now = clock_.now();
  if (failures_in_a_row_ > 0 && now - last_failure_ > kBackoffReset) failures_in_a_row_ = 0;
  last_failure_ = now;
  Duration delay = kBackoffBase;
  for (int i = 0; i < failures_in_a_row_ && delay < kBackoffCap; ++i) delay *= 2;
  delay = std::min(delay, kBackoffCap);
  ++failures_in_a_row_;
  delay += std::chrono::duration_cast<Duration>(delay * random_unit());
  if (error.retry_after)
    delay = std::max<Duration>(delay, std::min(*error.retry_after, kMaxRetryAfter));
  return delay;
}

Duration Reflector::report(std::string_view what, const Error& error, Duration wait) {
  stats_.failures.fetch_add(1, std::memory_order_relaxed);
  const auto wait_ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  log::warn("reflector {}: {}: {} ({}), next try in {} ms", options_.resource.plural, what,
            log::quoted(error.message), to_string(error.code), wait_ms);
  return wait;
}

TimePoint Reflector::note_contact() {
  const TimePoint now = clock_.now();
  stats_.last_contact.store(now, std::memory_order_relaxed);
  stats_.last_progress.store(now, std::memory_order_relaxed);
  return now;
}

void Reflector::enter_sink() {
  stats_.in_sink_since.store(note_contact(), std::memory_order_relaxed);
}

void Reflector::leave_sink() {
  stats_.in_sink_since.store(TimePoint::max(), std::memory_order_relaxed);
}

void Reflector::list_since(TimePoint since) {
  std::stop_source wake;
  {
    MutexLock lock(mutex_);
    if (began_ >= since) return;
    wanted_ = std::max(wanted_, since);
    wake = wake_;
  }
  // Outside of the lock: it runs callbacks.
  wake.request_stop();
}

std::stop_token Reflector::wake_token() {
  MutexLock lock(mutex_);
  return wake_.get_token();
}

}  // namespace lpp::k8s
