// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

namespace lpp {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kTooManyRequests: return "too_many_requests";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kAlreadyExists: return "already_exists";
    case ErrorCode::kExpired: return "expired";
    case ErrorCode::kUnauthorized: return "unauthorized";
    case ErrorCode::kForbidden: return "forbidden";
    case ErrorCode::kInvalid: return "invalid";
    case ErrorCode::kUnfit: return "unfit";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace lpp
