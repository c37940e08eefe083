// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_client.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "agent/protocol_version.h"
#include "base/log.h"
#include "base/strings.h"

namespace lpp::agent {

namespace {

constexpr std::chrono::seconds kCallLimit{20};
/// The controller holds a poll for four minutes at most.
constexpr std::chrono::seconds kPollLimit{300};
/// A poll that is answered sooner, and with nothing, was not held.
constexpr std::chrono::seconds kHeld{1};
/// A session that held so long was a good one.
constexpr std::chrono::seconds kGood{10};
constexpr int kAttempts = 3;

Error error_of(const k8s::Response& response) {
  Error error{.code = ErrorCode::kInternal, .http_status = response.status};
  if (response.status == 400) error.code = ErrorCode::kInvalid;
  if (response.status == 401) error.code = ErrorCode::kUnauthorized;
  if (response.status == 403) error.code = ErrorCode::kForbidden;
  if (response.status == 410) error.code = ErrorCode::kExpired;
  if (response.status == 429) error.code = ErrorCode::kTooManyRequests;
  if (response.status / 100 == 5) error.code = ErrorCode::kUnavailable;
  error.retry_after = response.retry_after;
  constexpr std::size_t kMostWords = 300;
  error.message = fmt::format("it answers {}: {}", response.status,
                              log::quoted(truncate_utf8(trim(response.body), kMostWords)));
  return error;
}

bool does_not_lead(const Error& error) { return error.http_status == 503; }

/// Whether the same call may well succeed in the same session.
bool may_pass(const Error& error) {
  return error.is(ErrorCode::kTimeout) || error.is(ErrorCode::kTooManyRequests) ||
         (error.is(ErrorCode::kUnavailable) && !does_not_lead(error));
}

}  // namespace

Duration delay_before(int attempt) {
  constexpr std::chrono::milliseconds kFirst{200};
  constexpr std::chrono::milliseconds kMost{10'000};
  constexpr int kDoublings = 6;  // enough for the most
  const auto full = std::min(kMost, kFirst * (1 << std::clamp(attempt, 0, kDoublings)));
  return std::chrono::duration_cast<Duration>(full * (0.5 + random_unit() / 2));
}

/// One session on one connection. Whichever of its two threads learns that it is over ends it.
class AgentClient::Session {
 public:
  Session(Agent& agent, Clock& clock, k8s::Transport& transport, const std::stop_token& stop)
      : agent_(agent), clock_(clock), transport_(transport), on_stop_(stop, EndIt{this}) {}

  Result<void> begin(const std::string& program) {
    const std::string body = encode(Hello{.program = program});
    LPP_ASSIGN_OR_RETURN(const auto answer, post(kHelloTarget, body, kCallLimit), "hello");
    LPP_ASSIGN_OR_RETURN(auto welcome, decode_welcome(answer), "hello");
    LPP_RETURN_IF_ERROR(check_spoken(welcome), "hello");
    id_ = std::move(welcome.session);
    agent_.open_bases(welcome.base_paths, welcome.cluster);
    agent_.begin_session();
    while (const auto tell = agent_.next_tell()) {
      LPP_RETURN_IF_ERROR(send(*tell, kAttempts), "tell");
      if (tell->everything && tell->last) break;
    }
    return {};
  }

  /// Returns why it is over.
  Error hold() {
    std::jthread teller([this] {
      set_thread_name("tell");
      while (agent_.wait_to_tell(ended_.get_token())) {
        const auto tell = agent_.next_tell();
        if (!tell) continue;
        if (auto sent = send(*tell, std::nullopt); !sent.ok()) return end(std::move(sent).error());
      }
    });
    if (auto polled = poll(); !polled.ok()) end(std::move(polled).error());
    teller.join();
    MutexLock lock(mutex_);
    return why_.value_or(Error{.code = ErrorCode::kCancelled, .message = "stopped"});
  }

 private:
  struct EndIt {
    Session* session;
    void operator()() const { session->ended_.request_stop(); }
  };

  void end(Error why) {
    {
      MutexLock lock(mutex_);
      if (!why_) why_ = std::move(why);
    }
    ended_.request_stop();
  }

  Result<std::string> post(std::string_view target, const std::string& body,
                           std::chrono::milliseconds limit) {
    const k8s::Request request{.method = "POST",
                               .target = std::string(target),
                               .body = body,
                               .content_type = "application/json",
                               .timeout = limit};
    auto response = transport_.round_trip(request, ended_.get_token());
    if (!response.ok()) return std::move(response).error();
    if (response->status / 100 != 2) return error_of(*response);
    return std::move(response->body);
  }

  /// False when the session is over.
  bool wait_after(const Error& error, int attempt) {
    const Duration asked = error.retry_after.value_or(std::chrono::seconds(0));
    return clock_.sleep_for(std::max(asked, delay_before(attempt)), ended_.get_token());
  }

  /// Until it has arrived; no number: as long as the session lasts.
  Result<void> send(Tell tell, std::optional<int> attempts) {
    tell.session = id_;
    const std::string body = encode(tell);
    for (int attempt = 0;; ++attempt) {
      const TimePoint sent = clock_.now();
      auto answer = post(kTellTarget, body, kCallLimit);
      if (answer.ok()) {
        LPP_ASSIGN_OR_RETURN(const auto told, decode_told(*answer), "told");
        agent_.told(told, sent);
        return {};
      }
      const bool last = attempts && attempt + 1 >= *attempts;
      if (last || !may_pass(answer.error()) || !wait_after(answer.error(), attempt)) {
        return std::move(answer).error();
      }
    }
  }

  Result<void> poll() {
    std::int64_t taken = 0;
    int failures = 0;
    while (!ended_.stop_requested()) {
      const TimePoint began = clock_.now();
      const std::string body = encode(Poll{.session = id_, .taken = taken});
      auto answer = post(kPollTarget, body, kPollLimit);
      if (!answer.ok()) {
        const bool give_up =
            ++failures >= kAttempts && !answer.error().is(ErrorCode::kTooManyRequests);
        if (give_up || !may_pass(answer.error()) || !wait_after(answer.error(), failures)) {
          return std::move(answer).error();
        }
        continue;
      }
      failures = 0;
      LPP_ASSIGN_OR_RETURN(const auto orders, decode_orders(*answer), "orders");
      for (const Order& order : orders.orders) {
        if (order.number <= taken) continue;  // repeated
        agent_.take(order);
        taken = order.number;
      }
      if (orders.orders.empty() && clock_.now() - began < kHeld) {
        clock_.sleep_for(delay_before(0), ended_.get_token());
      }
    }
    return {};
  }

  Agent& agent_;
  Clock& clock_;
  k8s::Transport& transport_;
  std::string id_{};
  std::stop_source ended_{};
  Mutex mutex_;
  std::optional<Error> why_ LPP_GUARDED_BY(mutex_);
  const std::stop_callback<EndIt> on_stop_;  // last: it uses the others
};

AgentClient::Ended AgentClient::hold_session(const Way& way, const std::stop_token& stop) {
  const auto transport = way.connect();
  if (!transport.ok()) return {.why = transport.error()};
  Session session(agent_, clock_, **transport, stop);
  if (auto begun = session.begin(options_.program); !begun.ok()) {
    return {.why = std::move(begun).error()};
  }
  log::info("connected to the controller at {}", way.name);
  told_trouble_.clear();
  ++stats_.begun;
  stats_.since = clock_.wall_now();
  connected_ = true;
  Ended ended{.why = session.hold(), .was_connected = true};
  connected_ = false;
  stats_.since.store({});
  return ended;
}

AgentClient::Ended AgentClient::have_session(const Way& way, const std::stop_token& stop) {
  Ended ended = hold_session(way, stop);
  auto& count = ended.was_connected ? stats_.ended : stats_.failed;
  ++count.at({std::string(stop.stop_requested() ? "stopped" : label_of(ended.why))});
  return ended;
}

void AgentClient::wait(const std::stop_token& stop) {
  clock_.sleep_for(delay_before(waits_++), stop);
}

void AgentClient::run(const std::stop_token& stop) {
  const auto say = [this](const std::string& trouble) {
    if (trouble != told_trouble_) log::warn("no session with the controller: {}", trouble);
    told_trouble_ = trouble;
  };
  while (!stop.stop_requested()) {
    auto ways = options_.find(stop);
    if (!ways.ok()) {
      ++stats_.failed.at({std::string(label_of(ways.error()))});
      say(ways.error().message);
      wait(stop);
      continue;
    }
    std::string trouble = "it has no address";
    for (const Way& way : *ways) {
      while (!stop.stop_requested()) {
        const TimePoint began = clock_.now();
        const Ended ended = have_session(way, stop);
        if (stop.stop_requested()) return;
        trouble = way.name + ": " + ended.why.message;
        // What asks for patience asks it of all who come.
        if (ended.why.retry_after) {
          clock_.sleep_for(std::min<Duration>(*ended.why.retry_after, std::chrono::seconds(60)),
                           stop);
        }
        if (!ended.was_connected) break;
        log::warn("the session with {} is over: {}", way.name, ended.why.message);
        if (clock_.now() - began >= kGood) waits_ = 0;
        if (!ended.why.is(ErrorCode::kExpired)) break;
        wait(stop);
      }
    }
    say(trouble);
    wait(stop);
  }
}

}  // namespace lpp::agent
