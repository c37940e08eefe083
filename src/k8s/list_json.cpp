// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "k8s/list_format.h"

namespace lpp::k8s {

namespace {

/// Finds the end of a value whose bytes come piece by piece. It looks at brackets and texts only:
/// whether what is between them is JSON finds out who parses it.
class ValueEnd {
 public:
  void begin() { *this = {}; }

  /// How many of these bytes belong to the value; ended() when that was its last one.
  std::size_t feed(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const char c = bytes[at];
      if (in_text_) {
        if (escaped_) {
          escaped_ = false;
        } else if (c == '\\') {
          escaped_ = true;
        } else if (c == '"') {
          in_text_ = false;
          if (depth_ == 0) return end(at + 1);
        }
        continue;
      }
      switch (c) {
        case '"':
          if (bare_) return end(at);
          in_text_ = true;
          break;
        case '{':
        case '[':
          if (bare_) return end(at);
          ++depth_;
          break;
        case '}':
        case ']':
          if (depth_ == 0) return end(at);  // of what is around a number, say
          if (--depth_ == 0) return end(at + 1);
          break;
        case ',':
        case ' ':
        case '\t':
        case '\r':
        case '\n':
          if (depth_ == 0) return end(at);
          break;
        default:
          if (depth_ == 0) bare_ = true;
      }
    }
    return bytes.size();
  }

  bool ended() const { return ended_; }

 private:
  std::size_t end(std::size_t length) {
    ended_ = true;
    return length;
  }

  std::size_t depth_ = 0;
  bool in_text_ = false;
  bool escaped_ = false;
  bool bare_ = false;  // a number, true, false or null
  bool ended_ = false;
};

/// {"kind": …, "metadata": {…}, "items": [{…}, {…}]}, in any order.
class JsonList final : public ListReader::Format {
 public:
  JsonList(Parts parts, std::size_t max_part) : parts_(std::move(parts)), max_part_(max_part) {}

  void feed(std::string_view chunk) override {
    while (!chunk.empty()) {
      if (step_ == Step::kValue) {
        const auto piece = chunk.substr(0, value_.feed(chunk));
        chunk.remove_prefix(piece.size());
        take(piece);
        continue;
      }
      const char c = chunk.front();
      const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      if (blank || punctuation(c)) chunk.remove_prefix(1);
    }
  }

  void finish() override {
    if (step_ != Step::kEnd) throw Malformed();
  }

 private:
  enum class Step : std::uint8_t {
    kBegin,      // the list's {
    kFirstName,  // or }
    kName,
    kColon,
    kField,       // the value of a field
    kAfterField,  // , or }
    kFirstItem,   // or ]
    kItem,
    kAfterItem,  // , or ]
    kValue,      // in a value: of part_
    kEnd
  };
  enum class Part : std::uint8_t { kName, kMetadata, kItem, kNotItems, kOther };

  static constexpr std::size_t kMaxName = 1024;

  /// A byte between values; whether it was taken, or begins a value.
  bool punctuation(char c) {
    const auto go_on = [&](Step next) {
      step_ = next;
      return true;
    };
    switch (step_) {
      case Step::kBegin:
        if (c == '{') return go_on(Step::kFirstName);
        break;
      case Step::kFirstName:
        if (c == '}') return go_on(Step::kEnd);
        [[fallthrough]];
      case Step::kName:
        if (c == '"') return begin(Part::kName, Step::kColon);
        break;
      case Step::kColon:
        if (c == ':') return go_on(Step::kField);
        break;
      case Step::kField:
        if (name_ == "items" && c == '[') return go_on(Step::kFirstItem);
        if (name_ == "items") return begin(Part::kNotItems, Step::kAfterField);
        return begin(name_ == "metadata" ? Part::kMetadata : Part::kOther, Step::kAfterField);
      case Step::kAfterField:
        if (c == ',') return go_on(Step::kName);
        if (c == '}') return go_on(Step::kEnd);
        break;
      case Step::kFirstItem:
        if (c == ']') return go_on(Step::kAfterField);
        [[fallthrough]];
      case Step::kItem: return begin(Part::kItem, Step::kAfterItem);
      case Step::kAfterItem:
        if (c == ',') return go_on(Step::kItem);
        if (c == ']') return go_on(Step::kAfterField);
        break;
      case Step::kValue:
      case Step::kEnd: break;
    }
    throw Malformed();
  }

  bool begin(Part part, Step after) {
    part_ = part;
    after_ = after;
    step_ = Step::kValue;
    value_.begin();
    return false;
  }

  void take(std::string_view piece) {
    const std::size_t most = part_ == Part::kName ? kMaxName : max_part_;
    // Of what nobody looks at nothing is held.
    const bool wanted = part_ != Part::kOther;
    if (wanted && held_.size() + piece.size() > most) throw Malformed();
    if (!value_.ended()) {
      if (wanted) held_ += piece;
      any_ = any_ || !piece.empty();
      return;
    }
    if (!held_.empty()) piece = held_ += piece;
    if (piece.empty() && !any_) throw Malformed();  // nothing where a value should be
    end_part(piece);
    any_ = false;
    held_.clear();
    if (held_.capacity() > kKeptCapacity) held_ = {};
    step_ = after_;
  }

  void end_part(std::string_view bytes) {
    switch (part_) {
      case Part::kName: {
        const auto name = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
        if (!name.is_string()) throw Malformed();
        name_ = name.get<std::string>();
        break;
      }
      case Part::kMetadata: parts_.metadata(bytes); break;
      case Part::kItem: parts_.item(bytes); break;
      case Part::kNotItems:
        if (bytes != "null") throw Malformed();  // as the API server writes no items at times
        break;
      case Part::kOther: break;
    }
  }

  // A usual item has a tenth of it.
  static constexpr std::size_t kKeptCapacity = std::size_t{64} << 10U;

  const Parts parts_;
  const std::size_t max_part_;
  Step step_ = Step::kBegin;
  Step after_ = Step::kBegin;  // the value
  Part part_ = Part::kOther;
  ValueEnd value_;
  std::string name_;  // of the field
  std::string held_;
  bool any_ = false;  // something of the value came
};

}  // namespace

std::unique_ptr<ListReader::Format> make_json_list(ListReader::Format::Parts parts,
                                                   std::size_t max_part) {
  return std::make_unique<JsonList>(std::move(parts), max_part);
}

}  // namespace lpp::k8s
