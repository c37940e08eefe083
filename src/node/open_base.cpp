// SPDX-License-Identifier: Apache-2.0
#include "node/open_base.h"

#include <fmt/format.h>

#include "node/record_folder.h"

namespace lpp::node {

Result<std::string> why_base_is_open(Kernel& kernel, int base, const std::string& shown) {
  struct statx status {};
  if (kernel.status(base, status) != 0) return system_error(errno, "statx " + shown);
  const unsigned mode = status.stx_mode & 07777U;
  // Without the permission to pass through, names do not help.
  if ((mode & 0011U) == 0) return std::string();
  return fmt::format(
      "{} stays open to other users of the node (mode {:04o}), as it was in use before its first "
      "volume: they reach the volumes in it as far as these allow; if nobody else needs it: chmod "
      "0700 {}",
      shown, mode, shown);
}

Result<bool> is_first_volume(Kernel& kernel, int base) {
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(kernel, base), "records");
  return !records.has_value();
}

}  // namespace lpp::node
