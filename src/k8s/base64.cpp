// SPDX-License-Identifier: Apache-2.0
#include "k8s/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace lpp::k8s {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kSpace = " \t\r\n";

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');  // the NUL behind it is written, too
  EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()));
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return kSpace.find(c) != std::string_view::npos; });
  // OpenSSL is more liberal about both.
  const auto padding = std::min(digits.find('='), digits.size());
  const std::size_t padded = digits.size() - padding;
  if (digits.size() % 4 != 0 || padded > 2 ||
      digits.find_first_not_of('=', padding) != std::string::npos ||
      std::string_view(digits).substr(0, padding).find_first_not_of(kAlphabet) !=
          std::string_view::npos) {
    return std::nullopt;
  }
  std::string bytes(digits.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(bytes_of(bytes), bytes_of(digits), static_cast<int>(digits.size())) < 0) {
    return std::nullopt;
  }
  bytes.resize(bytes.size() - padded);
  return bytes;
}

}  // namespace lpp::k8s
