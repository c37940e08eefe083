// SPDX-License-Identifier: Apache-2.0
#include "chaos/fault_mix.h"

#include <chrono>
#include <thread>

namespace lpp::testing {

namespace {

using std::chrono::milliseconds;

/// Of its frames, a watch meets a fault at this share of the level: they are many.
constexpr double kFrameShare = 0.1;
constexpr std::size_t kLongestDelay = 400;   // milliseconds
constexpr std::size_t kLatestAnswer = 3000;  // as long as the lease of a chaos run
constexpr std::size_t kSlowestAnswer = 500;

}  // namespace

ProxyHooks FaultMix::hooks() {
  return {.before = [this](const ApiRequest& request) { return before(request); },
          .after = [this](const ApiRequest& request,
                          int status) { leaders_.answered(replica_, request, status); },
          .frame = [this](const ApiRequest& request,
                          std::string_view text) { return frame(request, text); }};
}

void FaultMix::set_level(double level) {
  MutexLock lock(mutex_);
  level_ = level;
}

void FaultMix::expire_watches() {
  MutexLock lock(mutex_);
  expired_ = watched_;
}

std::map<std::string, std::size_t> FaultMix::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

Decision FaultMix::counted(const std::string& name, Decision decision) {
  ++counts_[name];
  return decision;
}

Decision FaultMix::before(const ApiRequest& request) {
  Decision decision;
  {
    MutexLock lock(mutex_);
    decision = choose(request);
  }
  // Waited for here and not by the proxy: who leads is asked when the request goes on.
  if (decision.delay.count() > 0) std::this_thread::sleep_for(std::exchange(decision.delay, {}));
  leaders_.arrives(replica_, request);
  return decision;
}

Decision FaultMix::choose(const ApiRequest& request) {
  if (request.is_watch()) watched_.insert(request.resource);
  if (request.is_watch() && expired_.erase(request.resource) > 0) {
    return counted("watch: 410", Decision::reply(410));
  }
  if (!random_.chance(level_)) return Decision::forward();
  // "Gone" must be believed, for an object and for a delete with a UID as its precondition.
  // A refused Event is dropped: only what a server in trouble says may meet one.
  const bool event = request.resource == "events";
  const bool may_say_gone = !event && (request.verb == "create" || request.verb == "list");
  const bool may_conflict =
      !event && (request.verb == "create" || request.verb == "update" || request.verb == "patch");
  const auto up_to = [this](std::size_t longest)
                         LPP_REQUIRES(mutex_) { return milliseconds(random_.below(longest)); };
  switch (random_.below(17)) {
    case 0:
    case 1:
    case 2: return counted("delay", Decision::after_delay(up_to(kLongestDelay)));
    case 3:
      return counted("429 with Retry-After", Decision::reply(429, {}, std::chrono::seconds(1)));
    case 4: return counted("500", Decision::reply(500));
    case 5: return counted("503", Decision::reply(503));
    case 6: return counted("reset before the call", Decision::cut_before());
    case 7: return counted("reset instead of the answer", Decision::cut_after());
    case 8: return counted("truncated answer", Decision::truncate(random_.below(2000)));
    case 9:
      if (may_conflict) return counted("409", Decision::reply(409));
      return counted("504", Decision::reply(504));
    case 10:
      if (request.verb == "create" && !event)
        return counted("409 exists", Decision::reply(409, "AlreadyExists"));
      if (request.is_watch()) return counted("watch: 410", Decision::reply(410));
      return counted("500", Decision::reply(500));
    case 11:
      if (may_say_gone) return counted("404", Decision::reply(404));
      return counted("503", Decision::reply(503));
    case 12: return counted("no answer", Decision::hang());
    case 13:
    case 14:
      return counted(request.is_watch() ? "slow watch" : "slow answer",
                     Decision::slow(up_to(kSlowestAnswer)));
    case 15: return counted("late answer: " + request.verb, Decision::late(up_to(kLatestAnswer)));
    default: return counted("answer held back", Decision::hang_after());
  }
}

FrameAction FaultMix::frame(const ApiRequest& request, std::string_view /*text*/) {
  MutexLock lock(mutex_);
  const bool silent = silent_.contains(request.sequence);
  if (!random_.chance(silent ? 0.1 : level_ * kFrameShare)) {
    return silent ? FrameAction::kDrop : FrameAction::kForward;
  }
  if (silent) {
    // What was lost is sent again by the next watch, or it may not resume at all.
    silent_.erase(request.sequence);
    if (random_.chance(0.3)) expired_.insert(request.resource);
    return FrameAction::kCut;
  }
  switch (random_.below(5)) {
    case 0: ++counts_["frame: cut"]; return FrameAction::kCut;
    case 1:
      ++counts_["frame: lost, and all later ones"];
      silent_.insert(request.sequence);
      return FrameAction::kDrop;
    case 2: ++counts_["frame: truncated"]; return FrameAction::kTruncate;
    default: ++counts_["frame: duplicated"]; return FrameAction::kDuplicate;
  }
}

}  // namespace lpp::testing
