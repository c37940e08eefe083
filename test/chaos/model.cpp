// SPDX-License-Identifier: Apache-2.0
#include "chaos/model.h"

#include <algorithm>

namespace lpp::testing {

const std::vector<ChaosClass>& chaos_classes() {
  static const std::vector<ChaosClass> classes = {
      {.name = "local-path"},
      {.name = "chaos-retain", .retain = true},
      {.name = "chaos-named", .pattern = true},
      {.name = "chaos-local"},
      {.name = "chaos-flip"},
      {.name = "chaos-refused", .possible = false},
      {.name = "chaos-shared"},
      {.name = "chaos-kept", .retain = true, .pattern = true, .comes_back = true},
      {.name = "chaos-back", .pattern = true, .comes_back = true},
  };
  return classes;
}

std::string machine_of(std::string_view node) {
  if (node.ends_with(kRenamed)) node.remove_suffix(kRenamed.size());
  return std::string(node);
}

const ChaosClass& chaos_class(const std::string& name) {
  const auto& classes = chaos_classes();
  const auto found = std::find_if(classes.begin(), classes.end(),
                                  [&](const ChaosClass& one) { return one.name == name; });
  return found == classes.end() ? classes.front() : *found;
}

}  // namespace lpp::testing
