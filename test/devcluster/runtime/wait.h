// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// Waits until the object satisfies the condition (null: it does not exist), woken by the changes
/// of its resource. False after the deadline, or once `give_up` (asked several times a second)
/// says so.
bool wait_for(const Registry& registry, const ObjectRef& ref,
              const std::function<bool(const nlohmann::json*)>& condition,
              std::chrono::milliseconds deadline, const std::function<bool()>& give_up = {});

}  // namespace lpp::devcluster
