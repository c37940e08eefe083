// SPDX-License-Identifier: Apache-2.0
#include "devcluster/runtime/wait.h"

#include <algorithm>

#include "base/clock.h"

namespace lpp::devcluster {

bool wait_for(const Registry& registry, const ObjectRef& ref,
              const std::function<bool(const nlohmann::json*)>& condition,
              std::chrono::milliseconds deadline, const std::function<bool()>& give_up) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLook{100};
  const SystemClock clock;
  const TimePoint end = clock.now() + deadline;
  const WatchReply watch = registry.watch({.resources = {ref.resource}});
  if (!watch.ok()) return false;
  for (;;) {
    const ObjectPtr object = registry.find(ref.resource, ref.ns, ref.name);
    if (condition(object.get())) return true;
    if (give_up && give_up()) return false;
    const auto left = std::chrono::ceil<milliseconds>(end - clock.now());
    if (left.count() <= 0 || watch.watch->ended()) return false;
    (void)watch.watch->next(give_up ? std::min(left, kLook) : left);
  }
}

}  // namespace lpp::devcluster
