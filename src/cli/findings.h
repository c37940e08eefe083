// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lpp::cli {

/// Something that `check` has to say about one place.
struct Finding {
  bool problem = true;    // false = a warning: works, but is worth a look
  std::string place{};    // file and line, object, field
  std::string message{};  // what is wrong
  std::string fix{};      // what to do, if the message does not say it
};

/// Collects what the checks find, and what they looked at. One thread.
struct Findings {
  std::vector<Finding> all{};
  std::vector<std::string> checked{};  // for the summary: "config.json", "2 StorageClasses"

  void problem(std::string place, std::string message, std::string fix = {}) {
    all.push_back({true, std::move(place), std::move(message), std::move(fix)});
  }
  void warning(std::string place, std::string message, std::string fix = {}) {
    all.push_back({false, std::move(place), std::move(message), std::move(fix)});
  }
};

}  // namespace lpp::cli
