// SPDX-License-Identifier: Apache-2.0
#include "app/version.h"

namespace lpp::app {

std::string_view version() { return LPP_VERSION; }

}  // namespace lpp::app
