// SPDX-License-Identifier: Apache-2.0
#include "helperpod/said.h"

#include <vector>

#include "base/strings.h"
#include "base/whole_number.h"

namespace lpp::helperpod {

using operation::Directory;

namespace {

/// The value of "name=" among the words; nothing when there is none that is a number from 0 on.
std::optional<std::int64_t> number_of(const std::vector<std::string_view>& words,
                                      std::string_view name) {
  for (std::string_view word : words) {
    if (!word.starts_with(name) || !word.substr(name.size()).starts_with('=')) continue;
    word.remove_prefix(name.size() + 1);
    const auto value = whole_number<std::int64_t>(word);
    return value && *value >= 0 ? value : std::nullopt;
  }
  return std::nullopt;
}

Directory read_directory(std::string_view word) {
  if (word == "made") return Directory::kMade;
  if (word == "found") return Directory::kFound;
  if (word == "removed") return Directory::kRemoved;
  if (word == "kept") return Directory::kKept;
  if (word == "absent") return Directory::kAbsent;
  return Directory::kUnknown;
}

/// All of them, or none is told.
std::optional<operation::Promises> read_promises(const std::vector<std::string_view>& words) {
  const auto unused = number_of(words, "unused");
  const auto used = number_of(words, "limitedUsed");
  const auto unlimited = number_of(words, "unlimited");
  if (!unused || !used || !unlimited) return std::nullopt;
  return operation::Promises{.unused = *unused, .used = *used, .unlimited = *unlimited};
}

std::optional<operation::Space> read_space(const std::vector<std::string_view>& words) {
  const auto size = number_of(words, "size");
  const auto free = number_of(words, "free");
  if (!size || !free || *free > *size) return std::nullopt;
  return operation::Space{.size = *size,
                          .free = *free,
                          .inodes = number_of(words, "inodes").value_or(0),
                          .free_inodes = number_of(words, "freeInodes").value_or(0),
                          .promises = read_promises(words)};
}

/// False: the line is for people.
bool read_line(std::string_view line, Said& said) {
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos) return false;
  const std::string_view about = line.substr(0, colon);
  const auto words = split(line.substr(colon + 2), ' ');
  if (about == "space") {
    said.space = read_space(words);
    return said.space.has_value();
  }
  if (about == "limits") {
    if (words.front() == "none") {
      said.kept.size = false;
    } else if (const auto bytes = number_of(words, "bytes"); bytes && *bytes > 0) {
      said.kept.size = true;
      said.kept.bytes = *bytes;
      said.kept.inodes = number_of(words, "inodes").value_or(0);
    }
    return said.kept.size.has_value();
  }
  if (about == "used") {
    const auto bytes = number_of(words, "bytes");
    if (!bytes) return false;
    said.usage = operation::Usage{.bytes = *bytes, .inodes = number_of(words, "inodes")};
    return true;
  }
  if (about == "checked") {
    for (const std::string_view word : words) {
      if (word == "reserve") said.kept.reserve = true;
      if (word == "overcommit") said.kept.overcommit = true;
      if (word == "mount") said.kept.mount = true;
    }
    return said.kept.reserve || said.kept.overcommit || said.kept.mount;
  }
  return false;
}

}  // namespace

Said read_message(std::string_view message) {
  Said said;
  auto lines = split(trim(message), '\n');
  const std::string_view last = trim(lines.back());
  constexpr std::string_view kDirectory = "directory: ";
  if (last.starts_with(kDirectory)) {
    said.directory = read_directory(last.substr(kDirectory.size()));
    if (said.directory != Directory::kUnknown) lines.pop_back();
  }
  for (const std::string_view line : lines) {
    if (read_line(trim(line), said)) continue;
    if (!said.rest.empty()) said.rest += '\n';
    said.rest += line;
  }
  said.rest = std::string(trim(said.rest));
  if (said.usage && said.kept.bytes == 0) said.usage.reset();  // of what has no limit
  if (said.usage) {
    said.usage->limit_bytes = said.kept.bytes;
    said.usage->limit_inodes = said.kept.inodes;
  }
  return said;
}

}  // namespace lpp::helperpod
