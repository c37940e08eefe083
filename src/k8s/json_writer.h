// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lpp::k8s {

/// The JSON text of a value, as dump() of the library gives it with bytes replaced that are not
/// UTF-8, in half of the time: texts without anything to look into are copied in one piece. Never
/// throws (but for memory).
std::string write_json(const nlohmann::json& value);

}  // namespace lpp::k8s
