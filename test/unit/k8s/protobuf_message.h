// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>

namespace lpp::testing {

/// A message of texts and of messages; numbers are those of generated.proto.
class Message {
 public:
  Message& text(std::uint32_t number, std::string_view value) {
    protozero::pbf_writer(bytes_).add_string(number, value.data(), value.size());
    return *this;
  }
  Message& integer(std::uint32_t number, std::int64_t value) {
    protozero::pbf_writer(bytes_).add_int64(number, value);
    return *this;
  }
  Message& message(std::uint32_t number, const Message& value) {
    return text(number, value.bytes_);
  }
  Message& entry(std::uint32_t number, std::string_view key, std::string_view value) {
    return message(number, Message().text(1, key).text(2, value));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// An object as the API server sends it.
inline std::string enveloped(const std::string& kind, const Message& object) {
  const auto unknown = Message()
                           .message(1, Message().text(1, "v1").text(2, kind))
                           .text(2, object.bytes())
                           .text(3, "")
                           .text(4, "");
  return std::string("k8s\0", 4) + unknown.bytes();
}

/// An event of a watch, without its length.
inline std::string frame_of(const std::string& type, const std::string& kind,
                            const Message& object) {
  return Message().text(1, type).message(2, Message().text(1, enveloped(kind, object))).bytes();
}

}  // namespace lpp::testing
