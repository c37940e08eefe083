// SPDX-License-Identifier: Apache-2.0
// Termination messages of helper pods, which any script may write: what is told of space and limits
// can be worked with.

#include "helperpod/said.h"

#include "property.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lpp::fuzz::require;
  const auto text = lpp::fuzz::text_of(data, size);
  const auto said = lpp::helperpod::read_message(text);
  require(said.rest.size() <= text.size(), "people are told no more than was said");
  if (said.usage) {
    const auto& usage = *said.usage;
    require(usage.bytes >= 0 && usage.inodes.value_or(0) >= 0, "no usage is negative");
    require(usage.limit_bytes > 0 && usage.limit_bytes == said.kept.bytes,
            "usage is told of what has a limit, with that limit");
    require(usage.limit_inodes >= 0, "no limit is negative");
  }
  if (!said.space) return 0;
  require(said.space->size >= 0 && said.space->free >= 0 && said.space->inodes >= 0 &&
              said.space->free_inodes >= 0,
          "no space is negative");
  require(said.space->free <= said.space->size, "no more is free than there is");
  return 0;
}
