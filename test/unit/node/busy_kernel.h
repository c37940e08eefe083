// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "node_bed.h"

namespace lpp::testing {

/// Does something else before the n-th call.
class BusyKernel final : public node::Kernel {
 public:
  BusyKernel(int at, std::function<void()> meanwhile)
      : left_(at), meanwhile_(std::move(meanwhile)) {}
  bool has_done() const { return left_ < 0; }

 protected:
  int before(const char* /*call*/) override {
    if (left_-- == 0) meanwhile_();
    return 0;
  }

 private:
  int left_;
  const std::function<void()> meanwhile_;
};

}  // namespace lpp::testing
