// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "harness/tls.h"

namespace lpp::testing {

/// First line and headers of an HTTP/1.1 message, names as sent.
struct MessageHead {
  std::string first_line{};
  std::vector<std::pair<std::string, std::string>> headers{};

  /// The first header of that name in any case, or nullptr.
  const std::string* find(std::string_view name) const;
  bool is_chunked() const;
  std::optional<std::size_t> content_length() const;
  /// Of a response; 0 if malformed.
  int status() const;
};

/// Reads HTTP/1.1 messages from a TLS stream. One thread. `before_block` runs before each read that
/// may wait; an error from it ends the read.
class HttpReader {
 public:
  explicit HttpReader(TlsStream& stream, std::function<Result<void>()> before_block = {})
      : stream_(stream), before_block_(std::move(before_block)) {}

  /// nullopt when the stream ended before the first byte.
  Result<std::optional<MessageHead>> read_head();

  /// Prepares for the body that the head announces; without a length it lasts until the end of the
  /// stream when `until_close` is set, otherwise there is none.
  void begin_body(const MessageHead& head, bool until_close);
  /// The next piece of the body as it comes; empty at its end.
  Result<std::string> next_piece();
  Result<std::string> read_body();

 private:
  enum class Framing { kLength, kChunked, kUntilClose };

  /// More bytes into buffer_; false at the end of the stream.
  Result<bool> fill();
  Result<std::string> read_line();
  Result<std::string> take_up_to(std::size_t limit);
  Result<std::string> next_chunk();

  TlsStream& stream_;
  const std::function<Result<void>()> before_block_;
  std::string buffer_;
  Framing framing_ = Framing::kLength;
  std::size_t left_ = 0;     // bytes of the body or of the current chunk
  bool first_chunk_ = true;  // no line end stands before its size
  bool body_ended_ = true;
};

}  // namespace lpp::testing
