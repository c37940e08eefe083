#include "provisioner/world.h"

#include <nlohmann/json.hpp>

namespace lpp::provisioner {

Result<bool> node_is_gone(World& world, const std::string& node) {
  if (world.nodes.get({"", node}) != nullptr) return false;
  const auto found = world.client.get(k8s::kNodes, {"", node});
  if (found.ok()) return false;
  if (found.error().is(ErrorCode::kNotFound)) return true;
  return found.error().wrap("read node " + node);
}

}  // namespace lpp::provisioner
