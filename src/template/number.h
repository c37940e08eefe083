// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "template/node.h"

namespace lpp::gotemplate {

/// Fills in the value of a number or character constant from node.text, by the rules of Go's
/// literals. Returns what is wrong with it, or "".
std::string parse_number(Node& node);

}  // namespace lpp::gotemplate
