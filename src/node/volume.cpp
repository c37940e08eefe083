// SPDX-License-Identifier: Apache-2.0
#include "node/volume.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "base/json_extent.h"
#include "base/strings.h"

namespace lpp::node {

namespace {

using nlohmann::json;

constexpr int kRecordVersion = 1;
constexpr std::size_t kMaxDepth = 16;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Names are bytes, and texts of JSON are not: each byte becomes the character of its number.
std::string to_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0U | (byte >> 6U));
      text += static_cast<char>(0x80U | (byte & 0x3FU));
    }
  }
  return text;
}

/// nullopt when it was not made by to_text().
std::optional<std::string> to_bytes(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
      continue;
    }
    if ((first != 0xC2 && first != 0xC3) || i + 1 == text.size()) return std::nullopt;
    const auto second = static_cast<unsigned char>(text[++i]);
    bytes += static_cast<char>(((first & 0x03U) << 6U) | (second & 0x3FU));
  }
  return bytes;
}

/// What a record may hold, and something else that it may not.
using Value = std::variant<std::monostate, std::string_view, std::uint64_t, bool>;
struct Member {
  std::string_view name{};
  Value value{};
};

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

/// Of an object as encode_record() writes it, if nothing in it is escaped, a sixth of the parser's
/// work: a look at a thousand volumes is mostly that. nullopt: the parser is to look at it.
std::optional<std::vector<Member>> plain_members(std::string_view rest) {
  const auto take = [&](char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  };
  const auto take_text = [&](std::string_view& text) {
    if (!take('"')) return false;
    std::size_t size = 0;
    while (size < rest.size() && is_plain(rest[size])) ++size;
    text = rest.substr(0, size);
    rest.remove_prefix(size);
    return take('"');
  };
  const auto take_value = [&]() -> Value {
    if (std::string_view text; take_text(text)) return text;
    for (const bool flag : {true, false}) {
      const std::string_view word = flag ? "true" : "false";
      if (!rest.starts_with(word)) continue;
      rest.remove_prefix(word.size());
      return flag;
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const auto size = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || (rest.front() == '0' && size != 1)) return {};
    rest.remove_prefix(size);
    return number;
  };
  std::vector<Member> members;
  members.reserve(16);
  if (!take('{')) return std::nullopt;
  do {
    Member& member = members.emplace_back();
    if (!take_text(member.name) || !take(':')) return std::nullopt;
    member.value = take_value();
    if (member.value.index() == 0) return std::nullopt;
  } while (take(','));
  if (!take('}') || (!rest.empty() && rest != "\n")) return std::nullopt;
  return members;
}

std::vector<Member> members_of(const json& object) {
  std::vector<Member> members;
  for (auto it = object.begin(); it != object.end(); ++it) {
    Member& member = members.emplace_back(Member{.name = it.key()});
    if (it->is_string()) member.value = it->get_ref<const std::string&>();
    if (it->is_number_unsigned()) member.value = it->get<std::uint64_t>();
    if (it->is_boolean()) member.value = it->get<bool>();
  }
  return members;
}

/// Reads members one by one; remembers the first that is not right.
class Reader {
 public:
  explicit Reader(const std::vector<Member>& members) : members_(members) {}

  std::string bytes(const char* name) {
    const auto* const text = get<std::string_view>(name);
    auto read = text == nullptr ? std::nullopt : to_bytes(*text);
    if (!read) wrong(name);
    return std::move(read).value_or("");
  }
  std::uint64_t number(const char* name) {
    const auto* const number = get<std::uint64_t>(name);
    if (number == nullptr) wrong(name);
    return number == nullptr ? 0 : *number;
  }
  /// Of a record that an earlier version wrote without it: 0.
  std::uint64_t later_number(const char* name) { return find(name) == nullptr ? 0 : number(name); }
  bool later_flag(const char* name, bool absent) {
    if (find(name) == nullptr) return absent;
    const auto* const flag = get<bool>(name);
    if (flag == nullptr) wrong(name);
    return flag == nullptr ? absent : *flag;
  }
  void wrong(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }
  const std::string& first_wrong() const { return wrong_; }

 private:
  /// Of one that is there twice the last, as parsers have it.
  const Value* find(std::string_view name) const {
    const auto found = std::find_if(members_.rbegin(), members_.rend(),
                                    [&](const Member& member) { return member.name == name; });
    return found == members_.rend() ? nullptr : &found->value;
  }
  template <typename Kind>
  const Kind* get(std::string_view name) const {
    const Value* const value = find(name);
    return value == nullptr ? nullptr : std::get_if<Kind>(value);
  }

  const std::vector<Member>& members_;
  std::string wrong_{};
};

}  // namespace

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= 200 && is_alphanumeric(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

Result<void> check_can_be(const Limits& limits) {
  if (limits.bytes <= kMostSize) return {};
  return invalid("a limit of " + std::to_string(limits.bytes) + " bytes cannot be set: " +
                 std::to_string(kMostSize) + " is the most, just under 8Ei; ask for less");
}

bool is_path(std::string_view text) {
  if (text.size() > 4000 || text.find('\0') != std::string_view::npos) return false;
  const auto parts = split(text, '/');
  return parts.front() != kRecordFolder &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return !part.empty() && part != "." && part != ".." && part.size() <= 255;
         });
}

std::string id_of_path(const std::string& path) {
  return is_id(path) ? path : "path-" + short_hash(path);
}

bool is_anothers(const Volume& recorded, const std::string& uid) {
  return !uid.empty() && !recorded.uid.empty() && recorded.uid != uid;
}

bool was_taken_for_another(const Volume& recorded, const std::string& uid) {
  const bool is_known = !uid.empty() || recorded.uid.empty() || recorded.taken_for_any;
  return !is_known || is_anothers(recorded, uid);
}

bool note_claim(Volume& volume, const std::string& claim, const std::string& uid) {
  const bool is_others = uid.empty() ? !claim.empty() && claim != volume.claim : uid != volume.uid;
  if (!is_others) return false;
  volume.claim = claim;
  volume.uid = uid;
  volume.origin = Origin::kFound;
  return true;
}

std::string_view to_string(Origin origin) { return origin == Origin::kMade ? "made" : "found"; }

std::string_view to_string(State state) {
  switch (state) {
    case State::kMaking: return "making";
    case State::kRemoving: return "removing";
    case State::kPresent: break;
  }
  return "present";
}

std::string encode_record(const Volume& volume) {
  json record{{"version", kRecordVersion},
              {"id", volume.id},
              {"path", to_text(volume.path)},
              {"claim", to_text(volume.claim)},
              {"uid", to_text(volume.uid)},
              {"origin", to_string(volume.origin)},
              {"state", to_string(volume.state)},
              {"project", volume.project},
              {"bytes", volume.limits.bytes},
              {"inodes", volume.limits.inodes},
              {"size", volume.size},
              {"published", volume.published},
              {"inode", volume.directory.inode},
              {"generation", volume.directory.generation},
              // As text, for it may be before 1970.
              {"born", std::to_string(volume.directory.born_ns)}};
  if (volume.taken_for_any) record["takenForAny"] = true;
  return record.dump() + "\n";
}

Result<Volume> decode_record(std::string_view text) {
  json parsed;  // what the members then lie in
  auto members = plain_members(text);
  if (!members) {
    if (first_json_value(text, kMaxDepth).too_deep_at)
      return invalid("not a record: nested too deep");
    parsed = json::parse(text, nullptr, false);
    if (!parsed.is_object()) return invalid("not a record: no JSON object");
    members = members_of(parsed);
  }

  Reader read(*members);
  if (read.number("version") != kRecordVersion) {
    return invalid("the record is of a version that this program does not know");
  }
  Volume volume{.id = read.bytes("id"), .path = read.bytes("path")};
  volume.claim = read.bytes("claim");
  volume.uid = read.bytes("uid");
  if (!is_id(volume.id)) read.wrong("id");
  if (!is_path(volume.path)) read.wrong("path");
  if (const std::string origin = read.bytes("origin"); origin == to_string(Origin::kFound)) {
    volume.origin = Origin::kFound;
  } else if (origin != to_string(Origin::kMade)) {
    read.wrong("origin");
  }
  if (const std::string state = read.bytes("state"); state == to_string(State::kRemoving)) {
    volume.state = State::kRemoving;
  } else if (state == to_string(State::kMaking)) {
    volume.state = State::kMaking;
  } else if (state != to_string(State::kPresent)) {
    read.wrong("state");
  }
  const std::uint64_t project = read.number("project");
  if (project > UINT32_MAX) read.wrong("project");
  volume.project = static_cast<std::uint32_t>(project);
  volume.limits = {.bytes = read.number("bytes"), .inodes = read.number("inodes")};
  volume.size = read.later_number("size");
  volume.published = read.later_flag("published", true);
  volume.taken_for_any = read.later_flag("takenForAny", false);
  volume.directory.inode = read.number("inode");
  const std::uint64_t generation = read.later_number("generation");
  if (generation > UINT32_MAX) read.wrong("generation");
  volume.directory.generation = static_cast<std::uint32_t>(generation);
  const std::string born = read.bytes("born");
  const auto [end, error] =
      std::from_chars(born.data(), born.data() + born.size(), volume.directory.born_ns);
  if (error != std::errc() || end != born.data() + born.size()) read.wrong("born");
  if (!read.first_wrong().empty()) {
    return invalid("the record's \"" + read.first_wrong() + "\" is missing or not right");
  }
  return volume;
}

}  // namespace lpp::node
