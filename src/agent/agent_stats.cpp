// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_stats.h"

namespace lpp::agent {

std::string_view label_of(const Error& why) {
  // Of all who may answer, only a replica that does not lead says so.
  if (why.http_status == 503) return "not_leading";
  switch (why.code) {
    case ErrorCode::kExpired: return "expired";
    case ErrorCode::kUnauthorized:
    case ErrorCode::kForbidden: return "refused";
    case ErrorCode::kTooManyRequests: return "busy";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kUnavailable: return "unreachable";
    case ErrorCode::kInvalid: return "protocol";
    case ErrorCode::kCancelled: return "stopped";
    default: return "error";
  }
}

}  // namespace lpp::agent
