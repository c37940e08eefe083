// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/bounded_read.h"

namespace lpp::k8s {

/// A bearer token from a file that others rotate (rules C1.5, C2.3): opened by its path
/// again when the copy is 50 s old; while it is missing or empty the last good token serves, and
/// before the first good one the fixed token. Thread-safe. The clock must outlive it.
class TokenSource {
 public:
  /// Either may be empty.
  TokenSource(std::string fixed_token, std::string file, Clock& clock);

  /// "" when there is neither token nor file; kUnauthorized when the file never gave one.
  Result<std::string> token();

  /// The server refused the token: the next token() reads the file (at most once a second).
  void invalidate();

 private:
  const BoundedRead file_;
  Clock& clock_;
  Mutex mutex_;
  std::string token_ LPP_GUARDED_BY(mutex_);
  TimePoint next_read_ LPP_GUARDED_BY(mutex_) = TimePoint::min();
  TimePoint last_read_ LPP_GUARDED_BY(mutex_) = TimePoint::min();
};

/// True when the text may stand in a header: visible ASCII and inner spaces only.
bool is_header_value(std::string_view text);

}  // namespace lpp::k8s
