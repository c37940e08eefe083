// SPDX-License-Identifier: Apache-2.0
// Records of volumes: what can be read is a volume that may be worked at, and reads the same again.

#include "node/volume.h"
#include "property.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lpp::fuzz::require;
  using namespace lpp::node;
  const auto read = decode_record(lpp::fuzz::text_of(data, size));
  const auto parsed = decode_record(" " + std::string(lpp::fuzz::text_of(data, size)));
  require(read.ok() == parsed.ok(), "a blank changes nothing");
  if (!read.ok()) {
    require(read.error().message == parsed.error().message, "nor what is wrong");
    require(!read.error().message.empty(), "an error has a message");
    return 0;
  }
  require(is_id(read->id), "the id is one");
  require(is_path(read->path), "the path stays below the base folder");
  const std::string text = encode_record(*read);
  const auto again = decode_record(text);
  require(again.ok(), "what was written can be read");
  require(again->directory == read->directory && again->limits == read->limits &&
              again->project == read->project && again->size == read->size &&
              again->path == read->path && again->state == read->state &&
              again->origin == read->origin,
          "a record reads as it was written");
  require(encode_record(*parsed) == text, "nor what is read");
  require(encode_record(*again) == text, "a record is written as it was read");
  return 0;
}
