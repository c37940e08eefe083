// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace lpp {

/// What a caller can do about a failure. Decide by code, never by message text.
enum class ErrorCode {
  kCancelled,        // we are stopping: end quietly
  kTimeout,          // no answer in time; a write may have been applied
  kUnavailable,      // no connection, cut connection or 5xx; a write may have been applied
  kTooManyRequests,  // 429: wait for retry_after
  kConflict,         // 409 Conflict: read again, decide again
  kNotFound,         // 404
  kAlreadyExists,    // 409 AlreadyExists
  kExpired,          // 410: list again
  kUnauthorized,     // 401
  kForbidden,        // 403: RBAC, quota or admission
  kInvalid,          // 400, 422 or bad input: repeating the same call cannot help
  kUnfit,            // it cannot be done in this place, such as a full disk; in another it may
  kInternal,         // anything else, our own defects included
};

/// Stable lower-case name for logs and metrics, e.g. "not_found".
std::string_view to_string(ErrorCode code);

/// A failure with enough context to act on and to explain. A plain value; cheap to move.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message{};
  int http_status = 0;                                // 0 when no HTTP answer was involved
  std::string reason{};                               // Status.reason of the API server, if any
  std::optional<std::chrono::seconds> retry_after{};  // from Retry-After or Status.details

  /// The same error with one phrase of context in front: "create helper pod a/b: <message>".
  Error wrap(std::string_view context) const& {
    Error copy = *this;
    return std::move(copy).wrap(context);
  }
  Error wrap(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }
  bool is(ErrorCode c) const { return code == c; }
};

/// A value or an Error. Ownership is the caller's. Reading the absent side is a defect.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

inline Error invalid(std::string message) {
  return Error{.code = ErrorCode::kInvalid, .message = std::move(message)};
}

inline Error unfit(std::string message) {
  return Error{.code = ErrorCode::kUnfit, .message = std::move(message)};
}
inline Error cancelled() { return Error{.code = ErrorCode::kCancelled, .message = "stopping"}; }

}  // namespace lpp

#define LPP_CONCAT_INNER(a, b) a##b
#define LPP_CONCAT(a, b) LPP_CONCAT_INNER(a, b)

/// LPP_ASSIGN_OR_RETURN(auto x, f(), "context"): x = value, or return the error with the context.
#define LPP_ASSIGN_OR_RETURN(lhs, expression, context) \
  LPP_ASSIGN_OR_RETURN_INNER(LPP_CONCAT(lpp_result_, __LINE__), lhs, expression, context)
#define LPP_ASSIGN_OR_RETURN_INNER(tmp, lhs, expression, context) \
  auto tmp = (expression);                                        \
  if (!tmp.ok()) return std::move(tmp).error().wrap(context);     \
  lhs = std::move(tmp).value()

/// LPP_RETURN_IF_ERROR(f(), "context") for Result<void>.
#define LPP_RETURN_IF_ERROR(expression, context)          \
  do {                                                    \
    if (auto lpp_status = (expression); !lpp_status.ok()) \
      return std::move(lpp_status).error().wrap(context); \
  } while (false)
