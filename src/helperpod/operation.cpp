#include "helperpod/operation.h"

namespace lpp::helperpod {

std::string_view to_string(HelperAction action) {
  return action == HelperAction::kCreate ? "create" : "delete";
}

}  // namespace lpp::helperpod
