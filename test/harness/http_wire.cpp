// SPDX-License-Identifier: Apache-2.0
#include "harness/http_wire.h"

#include <strings.h>

#include <array>
#include <charconv>

#include "base/strings.h"

namespace lpp::testing {

namespace {

constexpr std::size_t kHeadLimit = std::size_t{1024} * 1024;

Error malformed(const char* what) {
  return Error{.code = ErrorCode::kUnavailable, .message = std::string("bad HTTP: ") + what};
}

std::optional<std::size_t> parse_size(std::string_view text, int base) {
  std::size_t size = 0;
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, size, base);
  if (code != std::errc{} || end != last) return std::nullopt;
  return size;
}

}  // namespace

const std::string* MessageHead::find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && ::strncasecmp(key.data(), name.data(), key.size()) == 0) {
      return &value;
    }
  }
  return nullptr;
}

bool MessageHead::is_chunked() const {
  const std::string* encoding = find("Transfer-Encoding");
  return encoding != nullptr && to_lower(*encoding).find("chunked") != std::string::npos;
}

std::optional<std::size_t> MessageHead::content_length() const {
  const std::string* length = find("Content-Length");
  return length == nullptr ? std::nullopt : parse_size(*length, 10);
}

int MessageHead::status() const {
  const auto parts = split(first_line, ' ');
  return parts.size() < 2 ? 0 : static_cast<int>(parse_size(parts[1], 10).value_or(0));
}

Result<bool> HttpReader::fill() {
  if (before_block_ && !stream_.has_pending()) {
    if (auto ready = before_block_(); !ready.ok()) return std::move(ready).error();
  }
  std::array<char, 16'384> piece{};
  LPP_ASSIGN_OR_RETURN(const auto size, stream_.read(piece.data(), piece.size()), "body");
  buffer_.append(piece.data(), size);
  return size > 0;
}

Result<std::string> HttpReader::read_line() {
  while (true) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    if (buffer_.size() > kHeadLimit) return malformed("a line without an end");
    LPP_ASSIGN_OR_RETURN(const bool more, fill(), "line");
    if (!more) return malformed("the connection ended within a line");
  }
}

Result<std::optional<MessageHead>> HttpReader::read_head() {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t end = 0;
  while ((end = buffer_.find(kEnd)) == std::string::npos) {
    if (buffer_.size() > kHeadLimit) return malformed("a head without an end");
    LPP_ASSIGN_OR_RETURN(const bool more, fill(), "head");
    if (!more && buffer_.empty()) return std::optional<MessageHead>();
    if (!more) return malformed("the connection ended within a head");
  }
  MessageHead head;
  for (const auto line : split(std::string_view(buffer_).substr(0, end), '\n')) {
    if (head.first_line.empty()) {
      head.first_line = trim(line);
      continue;
    }
    const auto colon = line.find(':');
    if (colon == std::string::npos) return malformed("a header without a colon");
    head.headers.emplace_back(line.substr(0, colon), trim(line.substr(colon + 1)));
  }
  buffer_.erase(0, end + kEnd.size());
  return std::optional<MessageHead>(std::move(head));
}

void HttpReader::begin_body(const MessageHead& head, bool until_close) {
  body_ended_ = false;
  first_chunk_ = true;
  left_ = 0;
  if (head.is_chunked()) {
    framing_ = Framing::kChunked;
  } else if (const auto length = head.content_length()) {
    framing_ = Framing::kLength;
    left_ = *length;
  } else {
    framing_ = until_close ? Framing::kUntilClose : Framing::kLength;
  }
}

Result<std::string> HttpReader::take_up_to(std::size_t limit) {
  if (buffer_.empty()) {
    LPP_ASSIGN_OR_RETURN(const bool more, fill(), "body");
    if (!more) return std::string();
  }
  std::string piece = buffer_.substr(0, limit);
  buffer_.erase(0, piece.size());
  return piece;
}

Result<std::string> HttpReader::next_chunk() {
  if (left_ == 0) {
    if (!first_chunk_) {
      LPP_ASSIGN_OR_RETURN([[maybe_unused]] const auto line_end, read_line(), "chunk end");
    }
    first_chunk_ = false;
    LPP_ASSIGN_OR_RETURN(const std::string line, read_line(), "chunk size");
    const auto size = parse_size(trim(std::string_view(line).substr(0, line.find(';'))), 16);
    if (!size) return malformed("chunk size");
    left_ = *size;
    if (left_ == 0) {  // trailers, then an empty line
      while (true) {
        LPP_ASSIGN_OR_RETURN(const std::string trailer, read_line(), "trailer");
        if (trailer.empty()) return std::string();
      }
    }
  }
  LPP_ASSIGN_OR_RETURN(std::string piece, take_up_to(left_), "chunk");
  if (piece.empty()) return malformed("the connection ended within a chunk");
  left_ -= piece.size();
  return piece;
}

Result<std::string> HttpReader::next_piece() {
  if (body_ended_) return std::string();
  if (framing_ == Framing::kChunked) {
    auto piece = next_chunk();
    body_ended_ = !piece.ok() || piece->empty();
    return piece;
  }
  if (framing_ == Framing::kLength && left_ == 0) {
    body_ended_ = true;
    return std::string();
  }
  LPP_ASSIGN_OR_RETURN(std::string piece,
                       take_up_to(framing_ == Framing::kLength ? left_ : std::string::npos),
                       "body");
  if (framing_ == Framing::kLength) {
    if (piece.empty()) return malformed("the connection ended within the body");
    left_ -= piece.size();
  }
  body_ended_ = piece.empty();
  return piece;
}

Result<std::string> HttpReader::read_body() {
  std::string body;
  while (true) {
    LPP_ASSIGN_OR_RETURN(const std::string piece, next_piece(), "body");
    if (piece.empty()) return body;
    body += piece;
  }
}

}  // namespace lpp::testing
