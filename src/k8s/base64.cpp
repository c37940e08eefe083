// SPDX-License-Identifier: Apache-2.0
#include "k8s/base64.h"

#include <cstdint>

namespace lpp::k8s {

namespace {
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kSpace = " \t\r\n";
}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = bytes.size() - i;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8U) | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    text += kAlphabet[(group >> 18U) & 63U];
    text += kAlphabet[(group >> 12U) & 63U];
    text += n > 1 ? kAlphabet[(group >> 6U) & 63U] : '=';
    text += n > 2 ? kAlphabet[group & 63U] : '=';
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int digits = 0;
  int padding = 0;
  for (const char c : text) {
    if (kSpace.find(c) != std::string_view::npos) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    group = (group << 6U) | static_cast<std::uint32_t>(value);
    if (++digits == 4) {
      bytes += static_cast<char>((group >> 16U) & 255U);
      bytes += static_cast<char>((group >> 8U) & 255U);
      bytes += static_cast<char>(group & 255U);
      group = 0;
      digits = 0;
    }
  }
  // Two digits hold one byte, three hold two; the rest is padding.
  if (digits == 1 || (digits == 0 ? padding != 0 : padding != 4 - digits)) return std::nullopt;
  if (digits >= 2) bytes += static_cast<char>((group >> (digits == 2 ? 4U : 10U)) & 255U);
  if (digits == 3) bytes += static_cast<char>((group >> 2U) & 255U);
  return bytes;
}

}  // namespace lpp::k8s
