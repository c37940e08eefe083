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
  if (!said.space) return 0;
  require(said.space->size >= 0 && said.space->free >= 0 && said.space->inodes >= 0 &&
              said.space->free_inodes >= 0,
          "no space is negative");
  require(said.space->free <= said.space->size, "no more is free than there is");
  return 0;
}
