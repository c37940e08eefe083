// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

namespace lpp::provisioner {

/// What a reconciler's step asks of the queue.
struct [[nodiscard]] Action {
  enum class Kind {
    kDone,         // nothing more to do until something changes
    kAwaitChange,  // a change will wake the key; look again after `after` in any case
    kRetry,        // something failed for now: again after the key's back-off, or `after` if sooner
  };
  Kind kind = Kind::kDone;
  Duration after{};

  static Action done() { return {}; }
  static Action await_change(Duration latest) { return {Kind::kAwaitChange, latest}; }
  static Action retry() { return {Kind::kRetry, {}}; }
  bool operator==(const Action&) const = default;
};

/// What both steps of one key ask for.
inline Action sooner(const Action& a, const Action& b) {
  if (a.kind == b.kind) return a.after < b.after ? a : b;
  const Action& later = a.kind > b.kind ? b : a;
  Action both = a.kind > b.kind ? a : b;
  // What the one waits for must not be missed while the other backs off.
  if (both.kind == Action::Kind::kRetry) both.after = later.after;
  return both;
}

}  // namespace lpp::provisioner
