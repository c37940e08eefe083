// SPDX-License-Identifier: Apache-2.0
#include "chaos/leader_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace lpp::testing {

namespace {

/// The holder that a write of the lease sets; nothing for other requests.
std::optional<std::string> holder_in(const ApiRequest& request) {
  if (request.resource != "leases" || !request.is_write()) return std::nullopt;
  const auto lease = nlohmann::json::parse(request.body, nullptr, false);
  const nlohmann::json::json_pointer where("/spec/holderIdentity");
  if (lease.is_discarded() || !lease.contains(where)) return std::nullopt;
  return lease[where].get<std::string>();
}

bool is_leaders_work(const ApiRequest& request) {
  // A review of a token changes nothing: those that do not lead tell an agent so, too.
  return request.is_write() && request.resource != "leases" && request.resource != "events" &&
         request.resource != "tokenreviews";
}

}  // namespace

void LeaderRecord::arrives(std::size_t replica, const ApiRequest& request) {
  if (!is_leaders_work(request)) return;
  MutexLock lock(mutex_);
  if (std::chrono::steady_clock::now() < judged_from_) return;
  if (holder_ != kNobody && holder_ != replica) suspects_[{replica, request.sequence}] = holder_;
}

void LeaderRecord::answered(std::size_t replica, const ApiRequest& request, int status) {
  const auto holder = holder_in(request);
  MutexLock lock(mutex_);
  if (holder && status >= 200 && status < 300) {
    const std::size_t now = holder->empty() ? kNobody : replica;
    if (now != holder_ && now != kNobody) ++takeovers_;
    holder_ = now;
  }
  const auto suspect = suspects_.find({replica, request.sequence});
  if (suspect == suspects_.end()) return;
  if (std::chrono::steady_clock::now() >= judged_from_) {
    violations_.push_back(fmt::format("replica {} sent \"{}\" (answer {}) while replica {} led",
                                      replica, request.to_string(), status, suspect->second));
  }
  suspects_.erase(suspect);
}

void LeaderRecord::tampered(std::chrono::milliseconds duration) {
  MutexLock lock(mutex_);
  judged_from_ = std::max(judged_from_, std::chrono::steady_clock::now() + duration);
}

std::size_t LeaderRecord::takeovers() const {
  MutexLock lock(mutex_);
  return takeovers_;
}

std::vector<std::string> LeaderRecord::violations() const {
  MutexLock lock(mutex_);
  return violations_;
}

}  // namespace lpp::testing
