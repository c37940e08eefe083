// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "template/node.h"

namespace lpp::gotemplate {

/// Parses a template after Go's text/template/parse (BSD-style licence), without define, template
/// and block. Throws Failure with the message that Go gives.
Tree parse(std::string name, std::string text);

}  // namespace lpp::gotemplate
