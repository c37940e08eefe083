// SPDX-License-Identifier: Apache-2.0
#include "app/version.h"

namespace lpp::app {

std::string_view version() { return LPP_VERSION; }

std::string_view compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace lpp::app
