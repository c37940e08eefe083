#include "provisioner/world.h"

#include <nlohmann/json.hpp>

namespace lpp::provisioner {

std::string reason_of(const Error& error) {
  std::string word;
  bool upper = true;
  for (const char c : to_string(error.code)) {  // "too_many_requests"
    if (c == '_') {
      upper = true;
    } else {
      word += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return "Api" + word;
}

Result<bool> node_is_gone(World& world, const std::string& node) {
  if (world.nodes.get({"", node}) != nullptr) return false;
  const auto found = world.client.get(k8s::kNodes, {"", node});
  if (found.ok()) return false;
  if (found.error().is(ErrorCode::kNotFound)) return true;
  return found.error().wrap("read node " + node);
}

}  // namespace lpp::provisioner
