// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/frame_splitter.h"
#include "k8s/list_reader.h"
#include "property.h"

namespace lpp::fuzz {

/// The frames of a watch whose bytes come in chunks of `step`.
inline std::vector<std::string> frames_in_chunks(std::string_view stream, std::size_t step) {
  std::vector<std::string> frames;
  k8s::FrameSplitter splitter(1 << 16);
  while (!stream.empty()) {
    const auto outcome = splitter.feed(stream.substr(0, step), [&](std::string_view frame) {
      frames.emplace_back(frame);
      return true;
    });
    if (outcome != k8s::FrameSplitter::Outcome::kMore) break;
    stream.remove_prefix(std::min(step, stream.size()));
  }
  return frames;
}

/// The frames of a watch; `cut` says where its chunks end, which must not matter.
inline std::vector<std::string> frames_of(std::string_view stream, std::uint8_t cut) {
  auto frames = frames_in_chunks(stream, stream.size());
  require(frames == frames_in_chunks(stream, std::size_t{1} + cut), "cuts do not matter");
  return frames;
}

/// Reads a list in one piece and byte by byte, which must make no difference.
template <typename OnItem>
void check_list(std::string_view bytes, k8s::Projection fields, const OnItem& on_item) {
  k8s::ListReader whole(fields, on_item, 1 << 16);
  k8s::ListReader cut(
      fields, [](k8s::Value) {}, 1 << 16);
  whole.feed(bytes);
  for (const char& byte : bytes) cut.feed({&byte, 1});
  const bool is_list = !whole.finish().is_null();
  require(is_list == !cut.finish().is_null(), "cuts do not make a list of what is none");
  require(whole.items() == cut.items(), "cuts do not matter to the items of a list");
}

}  // namespace lpp::fuzz
