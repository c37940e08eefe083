#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lpp::provisioner {

/// True when both are the same path or one lies inside the other. Absolute, clean paths.
bool overlaps(std::string_view a, std::string_view b);

/// True when `path` lies inside `base` and is not `base` itself. Absolute, clean paths.
bool strictly_below(std::string_view path, std::string_view base);

/// kInvalid with the reason unless `path` is absolute and clean (no empty, "." or ".." component,
/// no control character, no trailing slash), has a parent that is not the root, and fits the limits
/// of Linux (255 bytes a component, 4095 in all).
Result<void> check_volume_path(std::string_view path);

/// kInvalid when removing `path` could destroy more than a volume: system directories and the
/// kubelet's own. For volumes whose base is no longer in the configuration.
Result<void> check_not_a_system_path(std::string_view path);

}  // namespace lpp::provisioner
