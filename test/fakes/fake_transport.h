// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "k8s/transport.h"

namespace lpp::testing {

/// A Transport that answers from scripts and records every request, so that tests can assert what
/// was asked and what was not. Thread-safe. Each script is a queue of answers for the requests it
/// matches (method and a part of the target; the first script that matches and is not used up
/// wins, in order of their creation); a request without an answer gets kInternal and is counted.
///
///   FakeTransport transport;
///   transport.on("GET", "/pods").reply(200, R"({"items":[]})").fail(ErrorCode::kUnavailable);
///   transport.on("GET", "watch=true").stream({"{...}\n", "{...}\n"}).hang();
///   transport.on("POST", "/events").always([](const auto&) { return Response{.status = 201}; });
class FakeTransport final : public k8s::Transport {
 public:
  /// Answers one request; the sink is null for round_trip.
  using Act = std::function<Result<k8s::Response>(const k8s::Request&, const k8s::ChunkSink* sink,
                                                  const std::stop_token& stop)>;

  class Script {
   public:
    Script& reply(int status, std::string body = "{}",
                  std::string content_type = "application/json") {
      return reply(k8s::Response{
          .status = status, .body = std::move(body), .content_type = std::move(content_type)});
    }
    Script& reply(k8s::Response response) {
      return run([response = std::move(response)](const auto&, const auto*, const auto&) {
        return Result<k8s::Response>(response);
      });
    }
    /// 429 or 5xx with Retry-After.
    Script& reply_retry_after(int status, std::chrono::seconds after, std::string body = "{}") {
      return reply(k8s::Response{.status = status,
                                 .body = std::move(body),
                                 .content_type = "application/json",
                                 .retry_after = after});
    }
    Script& fail(ErrorCode code, const std::string& message = "scripted failure") {
      return run([=](const auto&, const auto*, const auto&) {
        return Result<k8s::Response>(Error{.code = code, .message = message});
      });
    }
    /// Never answers: waits until the call is stopped.
    Script& hang() { return stream_and_hang({}); }
    /// A 200 stream of these chunks that the server then ends properly.
    Script& stream(std::vector<std::string> chunks) {
      return run([chunks = std::move(chunks)](const auto&, const k8s::ChunkSink* sink,
                                              const auto&) -> Result<k8s::Response> {
        send(chunks, sink);
        return k8s::Response{.status = 200};
      });
    }
    /// The chunks, then a failure such as a cut connection.
    Script& stream_and_fail(std::vector<std::string> chunks, ErrorCode code) {
      return run([chunks = std::move(chunks), code](const auto&, const k8s::ChunkSink* sink,
                                                    const auto&) -> Result<k8s::Response> {
        if (!send(chunks, sink)) return k8s::Response{.status = 200};
        return Error{.code = code, .message = "scripted cut"};
      });
    }
    /// The chunks, then silence until the call is stopped.
    Script& stream_and_hang(std::vector<std::string> chunks) {
      return run([chunks = std::move(chunks)](const auto&, const k8s::ChunkSink* sink,
                                              const auto& stop) -> Result<k8s::Response> {
        if (!send(chunks, sink)) return k8s::Response{.status = 200};
        wait_for_stop(stop);
        return cancelled();
      });
    }
    Script& run(Act act) {
      MutexLock lock(owner_.mutex_);
      acts_.push_back(std::move(act));
      return *this;
    }
    /// Answers every further request that matches.
    Script& always(std::function<Result<k8s::Response>(const k8s::Request&)> answer) {
      MutexLock lock(owner_.mutex_);
      forever_ = [answer = std::move(answer)](const k8s::Request& request, const auto*,
                                              const auto&) { return answer(request); };
      return *this;
    }

    Script(FakeTransport& owner, std::string method, std::string part)
        : owner_(owner), method_(std::move(method)), part_(std::move(part)) {}

   private:
    friend class FakeTransport;
    static bool send(const std::vector<std::string>& chunks, const k8s::ChunkSink* sink) {
      for (const auto& chunk : chunks) {
        if (sink != nullptr && !(*sink)(chunk)) return false;
      }
      return true;
    }

    FakeTransport& owner_;
    const std::string method_;  // "" = any
    const std::string part_;    // of the target; "" = any
    std::deque<Act> acts_;
    Act forever_;
  };

  /// A new script; stays valid as long as the transport. Scripts may be added at any time.
  Script& on(std::string method, std::string target_part) {
    MutexLock lock(mutex_);
    return scripts_.emplace_back(*this, std::move(method), std::move(target_part));
  }
  Script& on_any() { return on("", ""); }

  Result<k8s::Response> round_trip(const k8s::Request& request,
                                   const std::stop_token& stop) override {
    return answer(request, nullptr, stop);
  }
  Result<k8s::Response> receive(const k8s::Request& request, const k8s::ChunkSink& sink,
                                const std::stop_token& stop) override {
    auto result = answer(request, &sink, stop);
    if (result.ok() && result->status / 100 == 2 && !result->body.empty()) {
      sink(std::exchange(result->body, {}));
    }
    return result;
  }
  Result<k8s::Response> stream(const k8s::Request& request, const k8s::ChunkSink& sink,
                               const std::stop_token& stop) override {
    return answer(request, &sink, stop);
  }

  std::vector<k8s::Request> requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }
  /// "GET /api/v1/pods" and so on, in order.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& request : requests()) lines.push_back(request.method + " " + request.target);
    return lines;
  }
  std::size_t count(const std::string& method, const std::string& target_part) const {
    std::size_t n = 0;
    for (const auto& request : requests()) {
      if (request.method == method && request.target.find(target_part) != std::string::npos) ++n;
    }
    return n;
  }
  /// Requests for which no script had an answer.
  std::size_t unexpected() const {
    MutexLock lock(mutex_);
    return unexpected_;
  }
  /// Waits until n requests have been made; false after the (real) time limit.
  bool wait_for_requests(std::size_t n,
                         std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (requests_.size() < n && std::chrono::steady_clock::now() < deadline) {
      changed_.wait_until(mutex_, deadline);
    }
    return requests_.size() >= n;
  }

 private:
  static void wait_for_stop(const std::stop_token& stop) {
    Mutex mutex;
    CondVar cv;
    std::stop_callback wake(stop, [&] {
      MutexLock lock(mutex);
      cv.notify_all();
    });
    MutexLock lock(mutex);
    while (!stop.stop_requested()) cv.wait(mutex);
  }

  Result<k8s::Response> answer(const k8s::Request& request, const k8s::ChunkSink* sink,
                               const std::stop_token& stop) {
    if (stop.stop_requested()) return cancelled();
    return take(request)(request, sink, stop);
  }

  Act take(const k8s::Request& request) {
    MutexLock lock(mutex_);
    requests_.push_back(request);
    changed_.notify_all();
    for (Script& script : scripts_) {
      if (!script.method_.empty() && script.method_ != request.method) continue;
      if (request.target.find(script.part_) == std::string::npos) continue;
      if (!script.acts_.empty()) {
        Act act = std::move(script.acts_.front());
        script.acts_.pop_front();
        return act;
      }
      if (script.forever_) return script.forever_;
    }
    ++unexpected_;
    return [](const k8s::Request& unknown, const auto*, const auto&) -> Result<k8s::Response> {
      return Error{.code = ErrorCode::kInternal,
                   .message = "no scripted answer for " + unknown.method + " " + unknown.target};
    };
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::list<Script> scripts_ LPP_GUARDED_BY(mutex_);
  std::vector<k8s::Request> requests_ LPP_GUARDED_BY(mutex_);
  std::size_t unexpected_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::testing
