// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace lpp::bench {

inline constexpr const char* kFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";

/// An object's member of this name; an empty object when it has none.
inline nlohmann::json part(const nlohmann::json& object, const char* name) {
  return object.value(name, nlohmann::json::object());
}

}  // namespace lpp::bench
