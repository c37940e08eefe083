// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "k8s/list_format.h"
#include "k8s/protobuf_reader.h"

namespace lpp::k8s {

namespace {

// Field numbers of k8s.io/apimachinery's messages: a list stands in an Unknown.
constexpr std::uint32_t kTypeMetaField = 1;
constexpr std::uint32_t kRawField = 2;
constexpr std::uint32_t kEncodingField = 3;
constexpr std::uint32_t kMetadataField = 1;
constexpr std::uint32_t kItemsField = 2;

enum class Wire : std::uint8_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };

/// A tag, and what follows it of fixed meaning: a number's value, or the length of bytes.
struct Header {
  std::uint64_t tag = 0;
  std::uint64_t value = 0;
};

/// Each level of messages has its fields one after the other, and each says how long it is: so
/// nothing but the parts that are wanted needs to be held.
class ProtobufList final : public ListReader::Format {
 public:
  ProtobufList(Parts parts, std::size_t max_part) : parts_(std::move(parts)), max_part_(max_part) {}

  void feed(std::string_view chunk) override {
    while (true) {
      leave_ended_list();
      if (chunk.empty()) return;
      if (magic_ < kProtobufMagic.size()) {
        if (chunk.front() != kProtobufMagic[magic_++]) throw Malformed();
        chunk.remove_prefix(1);
      } else if (wanted_ == 0) {
        header_byte(static_cast<unsigned char>(chunk.front()));
        chunk.remove_prefix(1);
      } else {
        const auto piece = chunk.substr(0, wanted_);
        chunk.remove_prefix(piece.size());
        take(piece);
      }
    }
  }

  void finish() override {
    leave_ended_list();
    if (in_list_ || !had_list_ || !between_fields()) throw Malformed();
  }

 private:
  enum class Part : std::uint8_t { kNone, kTypeMeta, kMetadata, kItem };
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};
  static constexpr unsigned kLastShift = 63;

  /// What is left of the message that the reader is in.
  std::uint64_t& left() { return left_[in_list_ ? 1 : 0]; }

  void spend(std::uint64_t bytes) {
    if (left() == kNoEnd) return;
    if (bytes > left()) throw Malformed();
    left() -= bytes;
  }

  void leave_ended_list() {
    if (in_list_ && left() == 0 && between_fields()) in_list_ = false;
  }

  bool between_fields() const { return wanted_ == 0 && shift_ == 0 && !value_next_; }

  void header_byte(unsigned char byte) {
    spend(1);
    auto& number = value_next_ ? header_.value : header_.tag;
    const auto bits = static_cast<std::uint64_t>(byte & 0x7FU);
    if (shift_ == kLastShift && bits > 1) throw Malformed();
    number |= bits << shift_;
    if ((byte & 0x80U) != 0) {
      if (shift_ == kLastShift) throw Malformed();
      shift_ += 7;
      return;
    }
    shift_ = 0;
    if (!value_next_) {
      begin_field();
    } else {
      value_next_ = false;
      if (wire() == Wire::kBytes) begin_bytes(header_.value);
      header_ = {};
    }
  }

  Wire wire() const { return static_cast<Wire>(header_.tag & 7U); }

  void begin_field() {
    const std::uint64_t number = header_.tag >> 3U;
    if (number == 0 || number >> 29U != 0) throw Malformed();
    part_ = Part::kNone;
    switch (wire()) {
      case Wire::kVarint: require_known_as_bytes(); [[fallthrough]];
      case Wire::kBytes: value_next_ = true; return;
      case Wire::kEight: skip(8); return;
      case Wire::kFour: skip(4); return;
    }
    throw Malformed();
  }

  void skip(std::uint64_t bytes) {
    require_known_as_bytes();
    header_ = {};
    wanted_ = bytes;
  }

  /// None of the fields that are looked at is anything but bytes.
  void require_known_as_bytes() const {
    const std::uint64_t number = header_.tag >> 3U;
    const bool known =
        in_list_ ? number == kMetadataField || number == kItemsField
                 : number == kTypeMetaField || number == kRawField || number == kEncodingField;
    if (known) throw Malformed();
  }

  void begin_bytes(std::uint64_t length) {
    const std::uint64_t number = header_.tag >> 3U;
    if (left() != kNoEnd && length > left()) throw Malformed();
    if (in_list_) {
      if (number == kMetadataField) part_ = Part::kMetadata;
      if (number == kItemsField) part_ = Part::kItem;
    } else if (number == kTypeMetaField) {
      part_ = Part::kTypeMeta;
    } else if (number == kEncodingField) {
      if (length != 0) throw Malformed();  // compressed, say
    } else if (number == kRawField) {
      // What it is a list of comes first, as fields do in the order of their numbers.
      if (had_list_ || !kind_is_list_) throw Malformed();
      in_list_ = had_list_ = true;
      left() = length;
      return;
    }
    if (part_ != Part::kNone && length > max_part_) throw Malformed();
    wanted_ = length;
    if (length == 0) end_part({});
  }

  void take(std::string_view piece) {
    spend(piece.size());
    wanted_ -= piece.size();
    if (part_ == Part::kNone) return;
    if (wanted_ == 0 && held_.empty()) {
      end_part(piece);
      return;
    }
    // As long as it says that it is; bytes that never come cost no memory.
    if (held_.empty()) held_.reserve(piece.size() + wanted_);
    held_ += piece;
    if (wanted_ != 0) return;
    end_part(held_);
    held_.clear();
    if (held_.capacity() > kKeptCapacity) held_ = {};
  }

  void end_part(std::string_view bytes) {
    switch (part_) {
      case Part::kNone: break;
      case Part::kTypeMeta:
        kind_is_list_ = protobuf_kind(bytes).ends_with("List");
        if (!kind_is_list_) throw Malformed();
        break;
      case Part::kMetadata: parts_.metadata(bytes); break;
      case Part::kItem: parts_.item(bytes); break;
    }
    part_ = Part::kNone;
  }

  // A usual item has a tenth of it.
  static constexpr std::size_t kKeptCapacity = std::size_t{64} << 10U;

  const Parts parts_;
  const std::size_t max_part_;
  std::size_t magic_ = 0;  // so many bytes of it came
  std::array<std::uint64_t, 2> left_{kNoEnd, 0};
  bool in_list_ = false;
  bool had_list_ = false;
  bool kind_is_list_ = false;
  Header header_{};
  unsigned shift_ = 0;
  bool value_next_ = false;   // the tag is complete, a number follows
  std::uint64_t wanted_ = 0;  // so many bytes of a field are still to come
  Part part_ = Part::kNone;
  std::string held_;
};

}  // namespace

std::unique_ptr<ListReader::Format> make_protobuf_list(ListReader::Format::Parts parts,
                                                       std::size_t max_part) {
  return std::make_unique<ProtobufList>(std::move(parts), max_part);
}

}  // namespace lpp::k8s
