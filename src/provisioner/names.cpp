// SPDX-License-Identifier: Apache-2.0
#include "provisioner/names.h"

#include "base/strings.h"

namespace lpp::provisioner {

std::string lease_name(std::string_view provisioner_name) {
  std::string name = to_lower(provisioner_name);
  for (char& c : name) {
    if (c == '/' || c == '_') c = '-';
  }
  return name;
}

}  // namespace lpp::provisioner
