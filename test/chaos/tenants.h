// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>

#include "chaos/ledger.h"

namespace lpp::testing {

/// Those who use volumes: they write at any moment, whatever is done to the volumes meanwhile. The
/// ledger must outlive the object; a thread of its own.
class Tenants {
 public:
  Tenants(Ledger& ledger, std::uint64_t seed);

 private:
  std::jthread thread_;
};

}  // namespace lpp::testing
