// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/sync.h"
#include "devcluster/apiserver/faults.h"

/// What the embedded API server was asked, so that tests can also assert what was NOT done.
namespace lpp::devcluster {

struct RequestRecord {
  std::uint64_t number = 0;  ///< from 1, over all requests
  Operation operation{};
  std::string method{};
  std::string target{};  ///< path and query as sent
  std::string user{};
  int code = 0;  ///< 0: no answer, the connection was cut or hung on purpose
  std::chrono::steady_clock::time_point time{};
};

using RequestFilter = std::function<bool(const RequestRecord&)>;

/// A filter with the words of fault rules: requests("create pods"), requests("* pods/*").
RequestFilter requests(std::string_view operation);

/// Thread-safe. A request is here before its answer is sent; a watch when it starts.
class RequestLog {
 public:
  explicit RequestLog(std::size_t limit = 100'000) : limit_(limit) {}

  void add(RequestRecord record);
  std::vector<RequestRecord> all() const;
  std::vector<RequestRecord> find(const RequestFilter& filter) const;
  std::size_t count(const RequestFilter& filter) const;
  /// Waits until at least `count` requests match; false when `timeout` passed first.
  bool wait_for(const RequestFilter& filter, std::size_t count,
                std::chrono::milliseconds timeout) const;
  void clear();
  /// All requests ever, those forgotten or cleared included.
  std::uint64_t total() const;

 private:
  const std::size_t limit_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::deque<RequestRecord> records_ LPP_GUARDED_BY(mutex_);
  std::uint64_t total_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::devcluster
