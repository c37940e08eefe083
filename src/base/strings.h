// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lpp {

/// Parts between separators; "a,,b" gives an empty middle part, "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Without surrounding ASCII white space.
std::string_view trim(std::string_view text);

std::string to_lower(std::string_view text);

/// RFC 3986 percent-encoding of everything but unreserved characters.
std::string percent_encode(std::string_view text);

/// First 16 hex digits of SHA-256: for names that must be short and must not collide.
std::string short_hash(std::string_view text);

/// Random lower-case UUID (version 4) from the operating system's generator.
std::string random_uuid();

/// Uniform in [0, 1) and in [0, n). Thread-safe; for jitter and choices, not for secrets.
double random_unit();
std::size_t random_below(std::size_t n);

/// `text` cut to at most `limit` bytes without splitting a UTF-8 sequence.
std::string_view truncate_utf8(std::string_view text, std::size_t limit);

/// "10Gi", "1.5Gi", "512": bytes as Kubernetes writes sizes.
std::string bytes_text(std::uint64_t bytes);

/// The text up to its first line break, with " ..." when there is more than white space behind it.
std::string first_line(std::string_view text);

/// For a command that people are told to run: a shell reads that text back, whatever is in it.
std::string shell_word(std::string_view text);

/// Names the calling thread for ps, top and gdb (15 bytes are kept).
void set_thread_name(const std::string& name);

}  // namespace lpp
