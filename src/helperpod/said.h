// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "operation/executor.h"

namespace lpp::helperpod {

/// What the work in a helper pod tells in its termination message, line by line, beside what is for
/// people:
///
///     space: size=BYTES free=BYTES inodes=N freeInodes=N unused=BYTES limitedUsed=BYTES
///            unlimited=BYTES          in one line: the last three tell operation::Promises
///     limits: bytes=BYTES inodes=N    or    limits: none
///     used: bytes=BYTES inodes=N      of the directory; with "limits: bytes=…" only
///     checked: reserve overcommit mount
///     directory: made                 found, removed, kept or absent; the last line
///
/// Scripts of existing clusters say nothing of it. A line that cannot be read counts as not said.
struct Said {
  operation::Directory directory = operation::Directory::kUnknown;
  operation::Kept kept{};
  std::optional<operation::Space> space{};
  std::optional<operation::Usage> usage{};
  std::string rest{};  // of the message, for people
};

/// Pure. The message may hold anything.
Said read_message(std::string_view message);

}  // namespace lpp::helperpod
