// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "node_bed.h"

namespace lpp::testing {

using Prepare = std::function<void(const BaseFolder&)>;
using Work = std::function<bool(const node::Volumes&)>;
using Check = std::function<void(const BaseFolder&, const node::Volumes&)>;

/// Ends a process that does `work` at every place, each time on a new base folder, and lets
/// `check` look at what is there then. Returns the number of places.
template <typename Faulty = FaultyKernel>
int crash_everywhere(const Prepare& prepare, const Work& work, const Check& check) {
  for (int place = 0;; ++place) {
    const BaseFolder base;
    prepare(base);
    const int code = in_process([&] {
      Faulty faulty(place, 0);
      const auto volumes = node::Volumes::open(faulty, base.path(), {});
      return volumes.ok() && work(*volumes) ? 0 : 1;
    });
    REQUIRE((code == 0 || code == FaultyKernel::kCrashed));
    CAPTURE(place);
    node::Kernel kernel;
    check(base, base.volumes(kernel));
    if (code == 0) return place;
  }
}

/// The same with a call that fails.
template <typename Faulty = FaultyKernel>
int fail_everywhere(const Prepare& prepare, const Work& work, int error, const Check& check) {
  for (int place = 0;; ++place) {
    const BaseFolder base;
    prepare(base);
    Faulty faulty(place, error);
    if (const auto volumes = node::Volumes::open(faulty, base.path(), {}); volumes.ok()) {
      static_cast<void>(work(*volumes));
    }
    CAPTURE(place);
    node::Kernel kernel;
    check(base, base.volumes(kernel));
    if (faulty.places() <= place) return place;
  }
}

}  // namespace lpp::testing
