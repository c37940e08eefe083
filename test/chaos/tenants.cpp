// SPDX-License-Identifier: Apache-2.0
#include "chaos/tenants.h"

#include <chrono>

#include "base/strings.h"

namespace lpp::testing {

namespace {

constexpr std::size_t kLongestPause = 40;  // milliseconds

}  // namespace

Tenants::Tenants(Ledger& ledger, std::uint64_t seed)
    : thread_([&ledger, seed](const std::stop_token& stop) {
        set_thread_name("tenants");
        Random random(seed);
        while (!stop.stop_requested()) {
          ledger.write_somewhere(random);
          std::this_thread::sleep_for(std::chrono::milliseconds(random.below(kLongestPause)));
        }
      }) {}

}  // namespace lpp::testing
