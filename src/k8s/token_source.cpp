// SPDX-License-Identifier: Apache-2.0
#include "k8s/token_source.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::k8s {

namespace {
constexpr std::chrono::seconds kReadAgain{50};
constexpr std::chrono::seconds kReadAtMost{1};
}  // namespace

TokenSource::TokenSource(std::string fixed_token, std::string file, Clock& clock)
    : file_(std::move(file), clock), clock_(clock), token_(std::move(fixed_token)) {}

Result<std::string> TokenSource::token() {
  {
    MutexLock lock(mutex_);
    if (file_.path().empty() || (!token_.empty() && clock_.now() < next_read_)) return token_;
  }
  const auto content = file_.read();
  const std::string fresh = content.ok() ? std::string(trim(*content)) : std::string();
  std::string problem;
  if (!content.ok()) {
    problem = content.error().message;
  } else if (fresh.empty()) {
    problem = file_.path() + " is empty";
  } else if (!is_header_value(fresh)) {
    problem = file_.path() + " does not hold a token: there are control characters in it";
  }
  MutexLock lock(mutex_);
  last_read_ = clock_.now();
  next_read_ = last_read_ + kReadAgain;
  if (problem.empty()) {
    token_ = fresh;
    return token_;
  }
  const std::string last = token_;
  lock.unlock();
  if (last.empty()) {
    return Error{.code = ErrorCode::kUnauthorized, .message = "token file: " + problem};
  }
  log::warn("token file cannot be used, keeping the token read before: {}", problem);
  return last;
}

void TokenSource::invalidate() {
  MutexLock lock(mutex_);
  if (last_read_ == TimePoint::min()) return;
  next_read_ = std::min(next_read_, last_read_ + kReadAtMost);
}

bool is_header_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace lpp::k8s
