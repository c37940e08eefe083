// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"

namespace lpp::provisioner {

/// Whether the daemon itself writes that a claim and its volume are bound, and that a volume is
/// released; else the control plane's binder does. It knows when the API server has refused that,
/// as with the rights of an older ClusterRole. Thread-safe.
class Binding {
 public:
  enum class By { kUs, kControlPlane };

  Binding(Clock& clock, By by) : clock_(clock), by_(by) {}

  /// False as well for a while after a refusal.
  bool is_ours() const;
  /// The API server forbids it. Told once in the log for all writes that are refused together.
  void refused(const Error& error);
  /// Whether that is why: admission forbids the write of one object, too.
  static bool lacks_right(const Error& error);

  /// Then it is tried again: somebody may have given the right.
  static constexpr std::chrono::minutes kRefusedFor{10};
  /// What the control plane is about to write is waited for so long: it comes within this when
  /// nothing keeps it waiting.
  static constexpr std::chrono::milliseconds kBinderLimit{500};

 private:
  Clock& clock_;
  const By by_;
  mutable Mutex mutex_;
  TimePoint refused_until_ LPP_GUARDED_BY(mutex_){};
};

/// How it ended for a claim; these are words for counting.
inline constexpr std::string_view kBound = "bound";
inline constexpr std::string_view kBindingConflict = "conflict";
inline constexpr std::string_view kBindingForbidden = "forbidden";
inline constexpr std::string_view kBindingFailed = "failed";

}  // namespace lpp::provisioner
