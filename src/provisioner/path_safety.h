// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lpp::provisioner {

/// Whether the text holds one of U+0000 to U+001F or U+007F to U+009F, which a terminal or a script
/// may take for something else than text.
bool has_control_character(std::string_view text);

/// kInvalid with the reason unless `path` is absolute and clean (no empty, "." or ".." component,
/// no control character, no trailing slash), has a parent that is not the root, and fits the limits
/// of Linux (255 bytes a component, 4095 in all).
Result<void> check_volume_path(std::string_view path);

/// kInvalid when removing `path` could destroy more than a volume: system directories and the
/// kubelet's own. For volumes whose base is no longer in the configuration.
Result<void> check_not_a_system_path(std::string_view path);

}  // namespace lpp::provisioner
