// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/request_log.h"

#include <algorithm>
#include <iterator>

namespace lpp::devcluster {

RequestFilter requests(std::string_view operation) {
  return [rule = FaultRule(operation)](const RequestRecord& record) {
    return rule.matches(record.operation);
  };
}

void RequestLog::add(RequestRecord record) {
  const MutexLock lock(mutex_);
  record.number = ++total_;
  records_.push_back(std::move(record));
  if (records_.size() > limit_) records_.pop_front();
  changed_.notify_all();
}

std::vector<RequestRecord> RequestLog::all() const {
  const MutexLock lock(mutex_);
  return {records_.begin(), records_.end()};
}

std::vector<RequestRecord> RequestLog::find(const RequestFilter& filter) const {
  auto records = all();
  std::erase_if(records, [&filter](const RequestRecord& record) { return !filter(record); });
  return records;
}

std::size_t RequestLog::count(const RequestFilter& filter) const { return find(filter).size(); }

bool RequestLog::wait_for(const RequestFilter& filter, std::size_t count,
                          std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto before = total();
    if (this->count(filter) >= count) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    const MutexLock lock(mutex_);
    if (total_ == before) changed_.wait_until(mutex_, deadline);
  }
}

void RequestLog::clear() {
  const MutexLock lock(mutex_);
  records_.clear();
}

std::uint64_t RequestLog::total() const {
  const MutexLock lock(mutex_);
  return total_;
}

}  // namespace lpp::devcluster
