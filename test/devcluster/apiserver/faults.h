// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/sync.h"

/// Faults that the embedded API server makes on purpose, by rule:
///
///   server.faults().add(on("create pods").nth(2).reply(409));
///   server.faults().add(on("watch persistentvolumes").name_prefix("pvc-").lose_event());
///   server.faults().add(on("patch */status").with_probability(0.1, seed).cut_after());
namespace lpp::devcluster {

/// What a request is about; for watch rules of events, `name` is the object of the event.
struct Operation {
  std::string verb{};      ///< get list watch create update patch delete deletecollection
  std::string resource{};  ///< plural; "" for requests that are about no resource
  std::string subresource{};
  std::string ns{};
  std::string name{};  ///< for create, from the body: the name, or generateName
  std::string user_agent{};
};

struct FaultAction {
  enum class Kind {
    kReply,
    kCutBefore,
    kCutAfter,
    kDelay,
    kHang,
    kExpire,
    kCallBefore,
    kCallAfter,
    kLoseEvent,
    kDuplicateEvent,
    kTruncateEvent,
    kErrorEvent,
    kStallEvent,
  };
  Kind kind = Kind::kReply;
  int code = 0;
  std::string reason{};
  std::optional<std::chrono::seconds> retry_after{};
  std::chrono::milliseconds delay{0};
  std::size_t bytes = 0;
  std::function<void()> callback{};

  bool is_for_events() const {
    return kind == Kind::kLoseEvent || kind == Kind::kDuplicateEvent ||
           kind == Kind::kTruncateEvent || kind == Kind::kErrorEvent || kind == Kind::kStallEvent;
  }
};

/// One rule, built by chaining. A value.
class FaultRule {
 public:
  /// "<verb> <resource>[/<subresource>]"; "*" stands for any verb, resource or subresource.
  /// Without a subresource the rule is for the main resource only.
  explicit FaultRule(std::string_view operation);

  /// Which of the matching requests (or events) are hit; without any of these: all of them.
  FaultRule& nth(std::uint64_t n);    ///< only the n-th, from 1
  FaultRule& every(std::uint64_t n);  ///< every n-th
  FaultRule& times(std::uint64_t n);  ///< at most n in all
  FaultRule& with_probability(double probability, std::uint64_t seed);
  FaultRule& name_prefix(std::string prefix);
  FaultRule& user_agent_prefix(std::string prefix);

  /// What happens. The last call counts.
  FaultRule& reply(int code, std::string reason = {},
                   std::optional<std::chrono::seconds> retry_after = {});
  FaultRule& cut_before();                           ///< connection reset, nothing handled
  FaultRule& cut_after();                            ///< handled, but the answer is lost
  FaultRule& delay(std::chrono::milliseconds time);  ///< before handling
  FaultRule& hang();                                 ///< no answer until the client gives up
  FaultRule& expire();  ///< 410: as a frame for a watch, as the answer for anything else
  FaultRule& call_before(std::function<void()> callback);  ///< on the connection's thread
  FaultRule& call_after(std::function<void()> callback);   ///< handled, not yet answered
  FaultRule& lose_event();
  FaultRule& duplicate_event();
  FaultRule& truncate_event(std::size_t bytes);  ///< so many bytes of the frame, then a reset
  FaultRule& error_event(int code);              ///< an ERROR frame in its place, then the end

  FaultRule& stall_event();  ///< from this event on silence, with the connection open

  bool matches(const Operation& operation) const;

 private:
  friend class FaultRules;
  bool chosen();

  std::string verb_;
  std::string resource_;
  std::string subresource_;
  std::string name_prefix_;
  std::string user_agent_prefix_;
  std::uint64_t nth_ = 0;
  std::uint64_t every_ = 0;
  std::uint64_t times_ = 0;
  double probability_ = 1.0;
  std::mt19937_64 random_;
  FaultAction action_;
  std::uint64_t id_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t hits_ = 0;
};

inline FaultRule on(std::string_view operation) { return FaultRule(operation); }

/// The rules in force. Thread-safe; callbacks are handed out, never called, by this class.
class FaultRules {
 public:
  std::uint64_t add(FaultRule rule);
  void remove(std::uint64_t id);
  void clear();
  /// How often the rule struck; 0 for an unknown one.
  std::uint64_t hits(std::uint64_t id) const;

  /// The actions for a request, in the order of the rules.
  std::vector<FaultAction> decide(const Operation& operation);
  /// The actions for one event of a watch.
  std::vector<FaultAction> decide_event(const Operation& operation);

 private:
  std::vector<FaultAction> decide(const Operation& operation, bool for_events);

  mutable Mutex mutex_;
  std::vector<FaultRule> rules_ LPP_GUARDED_BY(mutex_);
  std::uint64_t next_id_ LPP_GUARDED_BY(mutex_) = 1;
};

}  // namespace lpp::devcluster
