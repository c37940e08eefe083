// SPDX-License-Identifier: Apache-2.0
#include "k8s/leader_elector.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "k8s/json_writer.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The acquire loop waits retry_period * [1, 1 + this) so that candidates spread (rule C8.5).
constexpr double kAcquireJitter = 1.2;

// The same failure comes with every attempt, each few seconds: it is said again only after this.
constexpr std::chrono::minutes kSayAgain{5};

/// Whether an attempt can succeed without that somebody changes something.
bool heals_by_itself(const Error& error) {
  switch (error.code) {
    case ErrorCode::kForbidden:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound: return false;
    default: return true;
  }
}

std::string_view what_to_do(const Error& error) {
  switch (error.code) {
    case ErrorCode::kForbidden:
      return "grant this process's account get, create and update on leases of "
             "coordination.k8s.io in that namespace (the Role in deploy/local-path-storage.yaml "
             "does), or run one replica without --leader-elect";
    case ErrorCode::kUnauthorized:
      return "the API server does not accept this process's credentials";
    case ErrorCode::kNotFound:
      return "create that namespace, or name another one with --leader-elect-resource-namespace";
    default: return "the API server refuses the lease as it is; removing it may help";
  }
}

std::string text_or_empty(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// A non-negative int32, as the API declares these fields; `otherwise` when it is anything else.
int count_or(const json& object, const char* name, int otherwise) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer()) return otherwise;
  const auto value = it->get<std::int64_t>();
  return value < 0 || value > std::numeric_limits<std::int32_t>::max() ? otherwise
                                                                       : static_cast<int>(value);
}

json spec_of(const json& lease) {
  const auto it = lease.find("spec");
  return it != lease.end() && it->is_object() ? *it : json::object();
}

}  // namespace

/// The lease as last seen, and when, by our clock, its record was last seen to change.
struct LeaderElector::Observed {
  json lease;  // null = none seen
  std::string record;
  std::string holder;
  std::string acquire_time;
  seconds duration{0};
  int transitions = 0;
  TimePoint at{};
};

LeaderElector::LeaderElector(ApiClient& client, Clock& clock, LeaderElectorOptions options,
                             Callbacks callbacks)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      observed_(std::make_unique<Observed>()) {}

LeaderElector::~LeaderElector() = default;

Result<void> LeaderElector::validate(const LeaderElectorOptions& options) {
  if (options.ns.empty()) return invalid("leader election: the lease needs a namespace");
  if (options.lease_name.empty()) return invalid("leader election: the lease needs a name");
  if (options.identity.empty()) return invalid("leader election: the identity is empty");
  if (options.retry_period < seconds(1)) {
    return invalid("leader election: retry period must be at least 1s");
  }
  // renew_deadline > 1.2 * retry_period, in whole numbers.
  if (options.renew_deadline * 10 <= options.retry_period * 12) {
    return invalid(fmt::format(
        "leader election: renew deadline ({}s) must be more than 1.2 times the retry period ({}s)",
        options.renew_deadline.count(), options.retry_period.count()));
  }
  if (options.lease_duration <= options.renew_deadline) {
    return invalid(fmt::format(
        "leader election: lease duration ({}s) must be more than the renew deadline ({}s)",
        options.lease_duration.count(), options.renew_deadline.count()));
  }
  return {};
}

bool LeaderElector::leading() const {
  return leading_.load(std::memory_order_acquire) && clock_.now() < valid_until();
}

TimePoint LeaderElector::valid_until() const {
  return valid_until_.load(std::memory_order_acquire);
}

std::string LeaderElector::leader() const {
  MutexLock lock(mutex_);
  return leader_;
}

std::optional<std::string> LeaderElector::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

void LeaderElector::run(const std::stop_token& stop) {
  // The stop ends requests too; only the release at the end is made without it.
  std::stop_source either;
  const auto forward = [&either] { either.request_stop(); };
  const std::stop_callback on_stop(stop, forward);
  const std::stop_callback on_client_stop(client_.options().stop, forward);
  const std::stop_token token = either.get_token();

  while (acquire(token)) {
    log::info("lease {}/{}: {} became leader", options_.ns, options_.lease_name, options_.identity);
    leading_.store(true, std::memory_order_release);
    callbacks_.started_leading();
    renew_until_lost(token);
    leading_.store(false, std::memory_order_release);
    callbacks_.stopped_leading();
    log::info("lease {}/{}: {} stopped leading", options_.ns, options_.lease_name,
              options_.identity);
    valid_until_.store(TimePoint::min(), std::memory_order_release);
  }
  release();
}

bool LeaderElector::acquire(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (try_acquire_or_renew(TimePoint::max(), stop) == Attempt::kHeld) {
      if (!stop.stop_requested()) return true;
      valid_until_.store(TimePoint::min(), std::memory_order_release);
      return false;
    }
    const double factor = 1.0 + kAcquireJitter * random_unit();
    clock_.sleep_for(std::chrono::duration_cast<Duration>(options_.retry_period * factor), stop);
  }
  return false;
}

void LeaderElector::renew_until_lost(const std::stop_token& stop) {
  // Counted from before the last renewal was sent: others count from after it arrived.
  TimePoint last_attempt = valid_until() - options_.lease_duration;
  while (true) {
    const TimePoint give_up = valid_until() - options_.lease_duration + options_.renew_deadline;
    if (!clock_.sleep_until(std::min(last_attempt + options_.retry_period, give_up), stop)) return;
    last_attempt = clock_.now();
    if (last_attempt >= give_up) {
      log::warn("lease {}/{}: not renewed for {} s, leadership is lost", options_.ns,
                options_.lease_name, options_.renew_deadline.count());
      return;
    }
    if (try_acquire_or_renew(give_up, stop) == Attempt::kHeldByOther) {
      log::warn("lease {}/{}: now held by {}, leadership is lost", options_.ns, options_.lease_name,
                log::quoted(observed_->holder));
      return;
    }
  }
}

// Steps (a) to (e) are those of rule C8.3.
LeaderElector::Attempt LeaderElector::try_acquire_or_renew(TimePoint deadline,
                                                           const std::stop_token& stop) {
  // (a) The leader renews what it wrote last, without reading.
  if (leading_.load(std::memory_order_relaxed) && observed_is_valid()) {
    if (update(deadline, stop) == Attempt::kHeld) return Attempt::kHeld;
    if (stop.stop_requested() || clock_.now() >= deadline) return Attempt::kFailed;
  }
  // (b)
  const auto lease =
      limited_client(deadline, stop).get(kLeases, {options_.ns, options_.lease_name});
  if (!lease.ok()) {
    if (lease.error().is(ErrorCode::kNotFound)) return create(deadline, stop);
    return accept(lease.error(), {}, "get");
  }
  // (c)
  observe(*lease, clock_.now());
  // (d)
  if (!observed_->holder.empty() && observed_->holder != options_.identity) {
    may_hold_ = false;
    if (leading_.load(std::memory_order_relaxed)) {
      valid_until_.store(TimePoint::min(), std::memory_order_release);
      return Attempt::kHeldByOther;
    }
    if (observed_is_valid()) {
      // A standby may well lack a right that it needs only later; reading at least works.
      MutexLock lock(mutex_);
      refused_.reset();
      return Attempt::kHeldByOther;
    }
  }
  // (e)
  return update(deadline, stop);
}

LeaderElector::Attempt LeaderElector::create(TimePoint deadline, const std::stop_token& stop) {
  const TimePoint sent = clock_.now();
  const std::string time = format_rfc3339_micro(clock_.wall_now());
  const json lease = {{"apiVersion", kLeases.api_version()},
                      {"kind", kLeases.kind},
                      {"metadata", {{"name", options_.lease_name}, {"namespace", options_.ns}}},
                      {"spec",
                       {{"holderIdentity", options_.identity},
                        {"leaseDurationSeconds", options_.lease_duration.count()},
                        {"acquireTime", time},
                        {"renewTime", time},
                        {"leaseTransitions", 0}}}};
  may_hold_ = true;
  return accept(limited_client(deadline, stop).create(kLeases, options_.ns, lease), sent, "create");
}

LeaderElector::Attempt LeaderElector::update(TimePoint deadline, const std::stop_token& stop) {
  const TimePoint sent = clock_.now();
  const std::string time = format_rfc3339_micro(clock_.wall_now());
  // What others put on the lease (labels, annotations) stays; its resourceVersion makes the update
  // fail when somebody else was faster.
  json lease = observed_->lease;
  json spec = spec_of(lease);
  const bool ours = observed_->holder == options_.identity;
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = options_.lease_duration.count();
  spec["renewTime"] = time;
  if (!ours || observed_->acquire_time.empty()) spec["acquireTime"] = time;
  if (!ours && observed_->transitions < std::numeric_limits<std::int32_t>::max()) {
    spec["leaseTransitions"] = observed_->transitions + 1;
  }
  lease["spec"] = std::move(spec);
  may_hold_ = true;
  return accept(
      limited_client(deadline, stop).update(kLeases, {options_.ns, options_.lease_name}, lease),
      sent, "update");
}

LeaderElector::Attempt LeaderElector::accept(const Result<json>& answer, TimePoint sent,
                                             std::string_view what) {
  if (answer.ok()) {
    observe(*answer, sent);
    observed_->at = sent;
    valid_until_.store(sent + options_.lease_duration, std::memory_order_release);
    said_.clear();
    MutexLock lock(mutex_);
    refused_.reset();
    return Attempt::kHeld;
  }
  failed(answer.error(), what);
  return Attempt::kFailed;
}

void LeaderElector::failed(const Error& error, std::string_view what) {
  const bool lost_race = error.is(ErrorCode::kConflict) || error.is(ErrorCode::kAlreadyExists);
  if (lost_race || error.is(ErrorCode::kCancelled)) {
    log::debug("lease {}/{}: {}: {}", options_.ns, options_.lease_name, what,
               log::quoted(error.message));
    return;
  }
  std::string text = fmt::format("lease {}/{}: {} failed: {}", options_.ns, options_.lease_name,
                                 what, error.message);
  const bool heals = heals_by_itself(error);
  if (!heals) {
    text += ". No volume is made or removed by this process: " + std::string(what_to_do(error));
    MutexLock lock(mutex_);
    refused_ = text;
  }
  const TimePoint now = clock_.now();
  if (text == said_ && now - said_at_ < kSayAgain) return;
  said_ = text;
  said_at_ = now;
  if (heals) {
    log::warn("{}", text);
  } else {
    log::error("{}", text);
  }
}

void LeaderElector::observe(const json& lease, TimePoint at) {
  const json spec = spec_of(lease);
  std::string record = write_json(spec);
  const std::string before =
      std::exchange(observed_->holder, text_or_empty(spec, "holderIdentity"));
  if (observed_->lease.is_null() || record != observed_->record) observed_->at = at;
  observed_->lease = lease;
  observed_->record = std::move(record);
  observed_->acquire_time = text_or_empty(spec, "acquireTime");
  observed_->transitions = count_or(spec, "leaseTransitions", 0);
  // A holder that does not say for how long is given as long as we would take.
  observed_->duration = seconds(
      count_or(spec, "leaseDurationSeconds", static_cast<int>(options_.lease_duration.count())));
  {
    MutexLock lock(mutex_);
    leader_ = observed_->holder;
  }
  if (observed_->holder != before && !observed_->holder.empty() && callbacks_.new_leader) {
    callbacks_.new_leader(observed_->holder);
  }
}

bool LeaderElector::observed_is_valid() const {
  return !observed_->lease.is_null() && clock_.now() < observed_->at + observed_->duration;
}

void LeaderElector::release() {
  if (!may_hold_) return;
  may_hold_ = false;
  valid_until_.store(TimePoint::min(), std::memory_order_release);
  const TimePoint deadline = clock_.now() + options_.renew_deadline / 2;
  ApiClient client = limited_client(deadline, client_.options().stop);
  // A conflict means that the lease was touched in between: look again whose it is.
  constexpr int kTries = 3;
  for (int i = 0; i < kTries && clock_.now() < deadline; ++i) {
    if (try_release(client)) return;
  }
}

bool LeaderElector::try_release(ApiClient& client) {
  const ObjectKey key{options_.ns, options_.lease_name};
  auto lease = client.get(kLeases, key);
  if (!lease.ok()) {
    if (!lease.error().is(ErrorCode::kNotFound)) {
      log::warn("lease {}: not released: {}", key.to_string(), log::quoted(lease.error().message));
    }
    return true;
  }
  json spec = spec_of(*lease);
  if (text_or_empty(spec, "holderIdentity") != options_.identity) return true;
  const std::string time = format_rfc3339_micro(clock_.wall_now());
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;
  spec["acquireTime"] = time;
  spec["renewTime"] = time;
  (*lease)["spec"] = std::move(spec);
  const auto updated = client.update(kLeases, key, *lease);
  if (updated.ok()) {
    log::info("lease {}: released", key.to_string());
    return true;
  }
  if (updated.error().is(ErrorCode::kConflict)) return false;
  log::warn("lease {}: not released: {}", key.to_string(), log::quoted(updated.error().message));
  return true;
}

ApiClient LeaderElector::limited_client(TimePoint deadline, std::stop_token stop) const {
  ApiClient::Options options = client_.options();
  options.call_timeout = std::min<milliseconds>(options.call_timeout, options_.renew_deadline / 2);
  if (deadline != TimePoint::max()) {
    options.call_timeout =
        std::min(options.call_timeout, std::chrono::ceil<milliseconds>(deadline - clock_.now()));
  }
  options.stop = std::move(stop);
  // Others' calls must not cost the lease; the retry period limits the elector enough.
  options.rate_limiter = nullptr;
  return client_.with(std::move(options));
}

}  // namespace lpp::k8s
