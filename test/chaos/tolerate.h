// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace lpp::testing {

/// What is not there, was changed meanwhile or is there already is no trouble for a step.
inline Result<void> tolerate(const Error& error) {
  if (error.is(ErrorCode::kNotFound) || error.is(ErrorCode::kConflict) ||
      error.is(ErrorCode::kAlreadyExists)) {
    return {};
  }
  return error;
}

template <typename T>
Result<void> tolerate(const Result<T>& result) {
  if (result.ok()) return {};
  return tolerate(result.error());
}

}  // namespace lpp::testing
