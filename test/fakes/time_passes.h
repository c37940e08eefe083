// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"

namespace lpp::testing {

/// Waits for that while time passes in steps. Each comes when somebody waits for time since the one
/// before: a thread that gets to run late finds no more of it gone. Where several threads wait, the
/// pace in real time is what gives each of them its turn.
inline bool as_time_passes(FakeClock& clock, Duration step, const std::function<bool()>& condition,
                           std::chrono::milliseconds pace = std::chrono::milliseconds(1)) {
  std::optional<std::uint64_t> waits;
  const auto goes_on = [&] {
    if (!waits || clock.waits() != *waits) waits = clock.advance(step);
    return condition();
  };
  return eventually(goes_on, std::chrono::seconds(60), pace);
}

}  // namespace lpp::testing
