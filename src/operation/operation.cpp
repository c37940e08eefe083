#include "operation/operation.h"

namespace lpp::operation {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kMake:
      return "make";
    case Kind::kTakeBack:
      return "take back";
    case Kind::kRemove:
      return "remove";
    case Kind::kResize:
      break;
  }
  return "resize";
}

bool same_place(const Operation& a, const Operation& b) {
  const bool any_node = a.node.empty() || b.node.empty() || (a.shared && b.shared);
  return (any_node || a.node == b.node) && a.path == b.path;
}

bool names_its_claim(const Operation& make) {
  const std::string& path = make.path;
  const bool below_base = !make.base_path.empty() && path.starts_with(make.base_path + "/");
  const std::size_t from = below_base ? make.base_path.size() : path.rfind('/');
  return !make.owner_uid.empty() && from != std::string::npos &&
         path.find(make.owner_uid, from) != std::string::npos;
}

}  // namespace lpp::operation
