// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/pattern_node.h"
#include "k8s/objects.h"

namespace lpp::config::pattern {

/// Evaluates a template after Go's text/template (BSD-style licence); where that prints
/// "<no value>", it is an error. Throws Failure; its message contains the place as Go names it ("at
/// <.X>: ").
std::string evaluate(const Tree& tree, std::string_view pv_name, const k8s::ObjectMeta& claim);

}  // namespace lpp::config::pattern
