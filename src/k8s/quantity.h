// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lpp::k8s {

/// Resource quantity as in k8s.io/apimachinery/pkg/api/resource (rule C9), e.g. "1Gi",
/// "1.5", "1e3". A plain value. Exact: nothing wraps, absurd exponents are refused.
class Quantity {
 public:
  /// kInvalid with the text quoted when it is not a quantity.
  static Result<Quantity> parse(std::string_view text);

  /// Smallest integer not closer to zero than the quantity (100m -> 1); saturates at the limits of
  /// int64, see saturated().
  std::int64_t value() const { return value_; }
  bool saturated() const { return saturated_; }

 private:
  std::int64_t value_ = 0;
  bool saturated_ = false;
};

}  // namespace lpp::k8s
