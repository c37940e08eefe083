// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "config/pattern_value.h"

namespace lpp::config::pattern {

/// A field of the pattern's data (.PVName, .PVC), of the claim's metadata, or an entry of its
/// labels or annotations: one that is missing is a value that is missing(), which has no fields but
/// missing ones. kInvalid with Go's message. Pure.
Result<Value> field_of(const Value& receiver, std::string_view name, bool has_arguments,
                       std::string_view pv_name, const k8s::ObjectMeta& claim);

/// An API time such as "2026-05-28T20:26:40Z" as Go prints it, in UTC.
std::string time_text(std::string_view rfc3339);

}  // namespace lpp::config::pattern
