// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operation/path_ledger.h"

namespace lpp::testing {

/// No volumes, and every node is known.
struct EmptyCluster final : operation::Surroundings {
  std::optional<operation::Holder> volume_in_the_way(const operation::Operation&) const override {
    return std::nullopt;
  }
  bool may_be_one_node(std::string_view a, std::string_view b) const override { return a == b; }
};

}  // namespace lpp::testing
