// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "template/node.h"
#include "template/value.h"

namespace lpp::gotemplate {

/// Evaluates a template after Go's text/template (BSD-style licence); where that prints
/// "<no value>", it is an error. Throws Failure; its message contains the place as Go names it ("at
/// <.X>: ").
std::string evaluate(const Tree& tree, const Object& data);

}  // namespace lpp::gotemplate
