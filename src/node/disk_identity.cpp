// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "node/record_folder.h"

namespace lpp::node {

namespace {

using nlohmann::json;

constexpr const char* kFile = "identity.json";
constexpr const char* kTemporary = "identity.write";
constexpr std::size_t kMostBytes = 4096;

/// Other members may stand beside it, also such as this version does not know.
Result<std::string> read_identity(std::string_view text) {
  const json record = json::parse(text, nullptr, false);
  if (!record.is_object()) return invalid("not the identity of a disk: no JSON object");
  const auto disk = record.find("disk");
  if (disk == record.end() || !disk->is_string()) {
    return invalid("not the identity of a disk: \"disk\" is missing or not right");
  }
  auto id = disk->get<std::string>();
  constexpr std::size_t kMostLetters = 64;
  if (!is_id(id) || id.size() > kMostLetters) {
    return invalid("not the identity of a disk: \"disk\" is not right");
  }
  return id;
}

}  // namespace

Result<std::string> RecordFolder::identity() const {
  const auto read = [&]() -> Result<std::string> {
    LPP_ASSIGN_OR_RETURN(const auto text, read_text(kFile, kMostBytes), "identity");
    if (!text) return std::string();
    LPP_ASSIGN_OR_RETURN(auto id, read_identity(*text), kFile);
    return id;
  };
  LPP_ASSIGN_OR_RETURN(auto id, read(), "disk");
  if (!id.empty()) return id;
  LPP_ASSIGN_OR_RETURN(const auto lock, lock_base(), "disk");
  LPP_ASSIGN_OR_RETURN(id, read(), "disk");
  if (!id.empty()) return id;
  id = random_uuid();
  const std::string text = json{{"version", 1}, {"disk", id}}.dump() + "\n";
  LPP_RETURN_IF_ERROR(put_file(kFile, kTemporary, text, true), "disk");
  if (kernel_->sync(fd_.get()) != 0) return system_error(errno, "fsync of the records");
  return id;
}

}  // namespace lpp::node
