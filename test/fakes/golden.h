// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "places/places.h"

namespace lpp::testing {

/// Compares a whole object with test/data/golden/NAME.json. With LPP_UPDATE_GOLDEN=1 in the
/// environment the file is written instead; read the difference before you keep it.
inline void check_golden(const std::string& name, const nlohmann::json& object) {
  namespace fs = std::filesystem;
  const fs::path file = repository("test/data/golden/" + name + ".json");
  if (std::getenv("LPP_UPDATE_GOLDEN") != nullptr) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << object.dump(2) << '\n';
    return;
  }
  std::ifstream stored(file);
  REQUIRE_MESSAGE(stored.good(), name << ": no such file; LPP_UPDATE_GOLDEN=1 writes it");
  const auto wanted = nlohmann::json::parse(stored, nullptr, false);
  REQUIRE_MESSAGE(!wanted.is_discarded(), name << ": not JSON");
  CHECK_MESSAGE(wanted == object, name << " differs:\n"
                                       << nlohmann::json::diff(wanted, object).dump(2));
}

}  // namespace lpp::testing
