// SPDX-License-Identifier: Apache-2.0
#include "node/label.h"

#include "base/strings.h"

namespace lpp::node {

std::string container_label(std::string_view label) {
  while (!label.empty() && label.back() == '\0') label.remove_suffix(1);
  const auto parts = split(label, ':');  // user, role, type, level, which has colons of its own
  if (parts.size() < 3) return "";
  std::string wanted = "system_u:object_r:container_file_t";
  if (parts.size() > 3) wanted += ":s0";
  const bool same_level = parts.size() == 3 || (parts.size() == 4 && parts[3] == "s0");
  return parts[2] == "container_file_t" && same_level ? "" : wanted;
}

Result<void> label_for_containers(Kernel& kernel, int folder) {
  std::string label;
  if (kernel.label(folder, label) != 0) {
    // A new directory has one where SELinux is on, whoever looks.
    if (errno == ENODATA || errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM ||
        errno == EACCES) {
      return {};
    }
    return system_error(errno, "getxattr security.selinux");
  }
  const std::string wanted = container_label(label);
  if (wanted.empty() || kernel.set_label(folder, wanted) == 0) return {};
  if (errno == EINVAL || errno == EOPNOTSUPP || errno == EPERM || errno == EACCES) return {};
  return system_error(errno, "setxattr security.selinux");
}

}  // namespace lpp::node
