#include "chaos/model.h"

#include <algorithm>

namespace lpp::testing {

const std::vector<ChaosClass>& chaos_classes() {
  static const std::vector<ChaosClass> classes = {
      {.name = "local-path"},  {.name = "chaos-retain", .retain = true},
      {.name = "chaos-named"}, {.name = "chaos-local"},
      {.name = "chaos-flip"},  {.name = "chaos-refused", .possible = false},
  };
  return classes;
}

const ChaosClass& chaos_class(const std::string& name) {
  const auto& classes = chaos_classes();
  const auto found = std::find_if(classes.begin(), classes.end(),
                                  [&](const ChaosClass& one) { return one.name == name; });
  return found == classes.end() ? classes.front() : *found;
}

}  // namespace lpp::testing
