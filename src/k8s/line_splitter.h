#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lpp::k8s {

/// Cuts a byte stream into lines, wherever its chunks begin and end. Blank lines are skipped. Each
/// byte is looked at once and copied at most once, and only when its line spans chunks. One thread.
class LineSplitter {
 public:
  enum class Outcome { kMore, kStopped, kTooLong };

  /// A line longer than this many bytes is refused: no peer may fill our memory.
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20U;

  explicit LineSplitter(std::size_t max_line = kMaxLine) : max_line_(max_line) {}

  /// Calls `on_line(std::string_view) -> bool` for each line that this chunk completes; false ends
  /// with kStopped. The view is valid during the call only.
  template <typename OnLine>
  Outcome feed(std::string_view chunk, const OnLine& on_line) {
    while (!chunk.empty()) {
      const auto end = chunk.find('\n');
      const auto part = chunk.substr(0, end);
      if (partial_.size() + part.size() > max_line_) return Outcome::kTooLong;
      if (end == std::string_view::npos) {
        partial_ += part;
        return Outcome::kMore;
      }
      chunk.remove_prefix(end + 1);
      if (!deliver(part, on_line)) return Outcome::kStopped;
    }
    return Outcome::kMore;
  }

  /// What came after the last newline.
  std::string_view rest() const { return partial_; }

 private:
  // Kept between lines to save allocations; a rare huge line does not pin its memory.
  static constexpr std::size_t kKeepCapacity = std::size_t{1} << 20U;

  template <typename OnLine>
  bool deliver(std::string_view part, const OnLine& on_line) {
    bool more = true;
    if (partial_.empty()) {
      if (!part.empty()) more = on_line(part);
      return more;
    }
    partial_ += part;
    more = on_line(std::string_view(partial_));
    partial_.clear();
    if (partial_.capacity() > kKeepCapacity) partial_.shrink_to_fit();
    return more;
  }

  const std::size_t max_line_;
  std::string partial_;
};

}  // namespace lpp::k8s
