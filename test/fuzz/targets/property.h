// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What every fuzz target promises besides not to crash.
namespace lpp::fuzz {

/// Ends the process with the property's name when it does not hold: a crash, to the fuzzer.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "property does not hold: %s\n", property);
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  // The bytes of an input; std::uint8_t is a byte type, so this is what char views may do.
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes what stands before the next newline off the front.
inline std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace lpp::fuzz

/// The target: libFuzzer calls it, and replay.cpp for each file of a corpus.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
