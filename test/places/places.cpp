// SPDX-License-Identifier: Apache-2.0
#include "places/places.h"

#include "harness/file_text.h"

namespace lpp::testing {

std::string repository(const std::string& path) {
  return path.empty() ? LPP_SOURCE_DIR : LPP_SOURCE_DIR "/" + path;
}

std::string repository_text(const std::string& path) { return text_of(repository(path)); }

std::string built(const std::string& path) { return LPP_BINARY_DIR "/" + path; }

}  // namespace lpp::testing
