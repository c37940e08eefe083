#include "helperpod/operation.h"

namespace lpp::helperpod {

std::string_view to_string(Action action) {
  return action == Action::kCreate ? "create" : "delete";
}

}  // namespace lpp::helperpod
