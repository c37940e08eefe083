// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "k8s/projection.h"

namespace lpp::k8s {

/// Reading what the API server sends, without holding more of it than is looked at: arrays called
/// "managedFields", a third of an object, are left out and not looked at, be they JSON or not. Free
/// functions without state; they never throw.

/// A JSON text as a value; discarded (is_discarded()) when it is not JSON or nested too deeply.
nlohmann::json read_json(std::string_view text, Projection projection = {});

/// A frame of a watch; `projection` is that of its "object".
nlohmann::json read_json_frame(std::string_view text, Projection projection);

}  // namespace lpp::k8s
