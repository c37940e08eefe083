// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lpp::devcluster {

/// The kubelet's expansion of command, args and env values: "$(NAME)" becomes its value, "$$"
/// becomes "$" (so "$$(NAME)" stays literal), an unknown name or an unclosed "$(" stays as it is.
/// `lookup` returns null for unknown names.
using VariableLookup = std::function<const std::string*(std::string_view name)>;
std::string expand_variables(std::string_view text, const VariableLookup& lookup);

}  // namespace lpp::devcluster
