#include "helperpod/operation.h"

#include "base/paths.h"

namespace lpp::helperpod {

std::string_view to_string(HelperAction action) {
  return action == HelperAction::kCreate ? "create" : "delete";
}

bool collide(const Operation& a, const Operation& b) {
  const bool any_node = a.node.empty() || b.node.empty() || a.shared || b.shared;
  return a.volume_name != b.volume_name && (any_node || a.node == b.node) &&
         overlaps(a.path, b.path);
}

}  // namespace lpp::helperpod
