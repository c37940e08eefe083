// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "base/result.h"

/// LPP_MUST(call) is the value of a Result; an Error ends the test case with its message.
#define LPP_MUST(expression)                                                 \
  ([&]() -> decltype(auto) {                                                 \
    auto lpp_must_result = (expression);                                     \
    if (!lpp_must_result.ok()) {                                             \
      FAIL(std::string(#expression ": " + lpp_must_result.error().message)); \
    }                                                                        \
    return ::lpp::testing::take(std::move(lpp_must_result));                 \
  }())

namespace lpp::testing {

template <typename T>
T take(Result<T>&& result) {
  return std::move(result).value();
}
inline void take(Result<void>&& /*result*/) {}

}  // namespace lpp::testing
