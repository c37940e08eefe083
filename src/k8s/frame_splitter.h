// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lpp::k8s {

/// Cuts the byte stream of a watch into frames, wherever its chunks begin and end. The stream's
/// first byte says how: JSON comes in lines (blank ones are skipped); protobuf comes after its
/// length in four bytes, the highest first, which for the first frame is zero: none is as long as
/// 16 MiB. Each byte is copied at most once, and only when its frame spans chunks. One thread.
class FrameSplitter {
 public:
  enum class Outcome { kMore, kStopped, kTooLong };

  /// A frame longer than this many bytes is refused: no peer may fill our memory. The API server
  /// takes no object of more than 3 MiB; JSON may write each byte of it as six.
  static constexpr std::size_t kMaxFrame = std::size_t{20} << 20U;

  explicit FrameSplitter(std::size_t max_frame = kMaxFrame) : max_frame_(max_frame) {}

  /// Calls `on_frame(std::string_view) -> bool` for each frame that this chunk completes; false
  /// ends with kStopped. The view is valid during the call only.
  template <typename OnFrame>
  Outcome feed(std::string_view chunk, const OnFrame& on_frame) {
    if (chunk.empty()) return Outcome::kMore;
    if (!begun_) {
      begun_ = true;
      counted_ = chunk.front() == '\0';
    }
    while (!chunk.empty()) {
      const Piece piece = counted_ ? next_counted(chunk) : next_line(chunk);
      if (piece.too_long) return Outcome::kTooLong;
      chunk.remove_prefix(piece.taken);
      if (!piece.complete) {
        partial_ += piece.bytes;
        return Outcome::kMore;
      }
      if (!deliver(piece.bytes, on_frame)) return Outcome::kStopped;
    }
    return Outcome::kMore;
  }

  /// What came after the last frame that was complete.
  std::string_view rest() const { return partial_; }

 private:
  static constexpr std::size_t kLengthBytes = 4;
  // Kept between frames to save allocations; a rare huge frame does not pin its memory.
  static constexpr std::size_t kKeepCapacity = std::size_t{64} << 10U;

  /// What of a chunk belongs to the frame in progress.
  struct Piece {
    std::string_view bytes{};
    std::size_t taken = 0;
    bool complete = false;
    bool too_long = false;
  };

  Piece next_line(std::string_view chunk) const {
    const auto end = chunk.find('\n');
    const bool complete = end != std::string_view::npos;
    const auto line = chunk.substr(0, end);
    return {.bytes = line,
            .taken = line.size() + (complete ? 1 : 0),
            .complete = complete,
            .too_long = partial_.size() + line.size() > max_frame_};
  }

  Piece next_counted(std::string_view chunk) const {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      if (i >= partial_.size() + chunk.size()) return {.bytes = chunk, .taken = chunk.size()};
      const char byte = i < partial_.size() ? partial_[i] : chunk[i - partial_.size()];
      length = length << 8U | static_cast<unsigned char>(byte);
    }
    if (length > max_frame_) return {.too_long = true};
    const auto piece = chunk.substr(0, kLengthBytes + length - partial_.size());
    return {.bytes = piece,
            .taken = piece.size(),
            .complete = partial_.size() + piece.size() == kLengthBytes + length};
  }

  template <typename OnFrame>
  bool deliver(std::string_view last, const OnFrame& on_frame) {
    const auto show = [&](std::string_view frame) {
      if (counted_) frame.remove_prefix(kLengthBytes);
      return frame.empty() || on_frame(frame);
    };
    if (partial_.empty()) return show(last);
    partial_ += last;
    const bool more = show(partial_);
    partial_.clear();
    if (partial_.capacity() > kKeepCapacity) partial_ = {};
    return more;
  }

  const std::size_t max_frame_;
  bool begun_ = false;
  bool counted_ = false;  // frames come after their length
  std::string partial_;
};

}  // namespace lpp::k8s
