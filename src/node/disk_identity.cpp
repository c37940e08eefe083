// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "node/record_folder.h"
#include "node/volumes.h"

namespace lpp::node {

namespace {

using nlohmann::json;

constexpr const char* kFile = "identity.json";
constexpr const char* kTemporary = "identity.write";
constexpr std::size_t kMostBytes = 4096;

struct Identities {
  json record{};  // other members may stand beside these, also such as this version does not know
  std::string disk{};
  std::string cluster{};
};

Result<Identities> read_identities(std::string_view text) {
  Identities read{.record = json::parse(text, nullptr, false)};
  if (!read.record.is_object()) return invalid("not the identity of a disk: no JSON object");
  const auto id_in = [&](const char* name, std::string& to) {
    const auto it = read.record.find(name);
    if (it == read.record.end() || !it->is_string()) return false;
    to = it->get<std::string>();
    constexpr std::size_t kMostLetters = 64;
    return is_id(to) && to.size() <= kMostLetters;
  };
  if (!id_in("disk", read.disk)) {
    return invalid("not the identity of a disk: \"disk\" is missing or not right");
  }
  if (read.record.contains("cluster") && !id_in("cluster", read.cluster)) {
    return invalid("not the identity of a disk: \"cluster\" is not right");
  }
  return read;
}

/// Without a disk: there is none yet.
Result<Identities> read_file_of(const RecordFolder& records) {
  LPP_ASSIGN_OR_RETURN(const auto text, records.read_text(kFile, kMostBytes), "identity");
  if (!text) return Identities{.record = json::object({{"version", 1}})};
  LPP_ASSIGN_OR_RETURN(auto read, read_identities(*text), kFile);
  return read;
}

}  // namespace

Result<DiskIdentity> RecordFolder::identities(const std::string& ours) const {
  LPP_ASSIGN_OR_RETURN(auto read, read_file_of(*this), "identity");
  const auto is_whole = [&] {
    return !read.disk.empty() && (!read.cluster.empty() || ours.empty());
  };
  if (!ours.empty() && !is_id(ours)) return invalid("not the identity of a cluster");
  if (!is_whole()) {
    LPP_ASSIGN_OR_RETURN(const auto lock, lock_base(), "identity");
    LPP_ASSIGN_OR_RETURN(read, read_file_of(*this), "identity");
    if (!is_whole()) {
      DiskIdentity before{.disk = read.disk, .cluster = read.cluster};
      if (read.disk.empty()) read.disk = random_uuid();
      if (read.cluster.empty()) read.cluster = ours;
      read.record["disk"] = read.disk;
      if (!read.cluster.empty()) read.record["cluster"] = read.cluster;
      auto put = put_identity(read.record.dump() + "\n");
      if (!put.ok() && !put.error().is(ErrorCode::kUnfit)) return std::move(put).error();
      if (!put.ok()) {
        before.missing = std::move(put).error();
        return before;
      }
    }
  }
  return DiskIdentity{.disk = read.disk, .cluster = read.cluster};
}

Result<std::string> RecordFolder::identity() const {
  LPP_ASSIGN_OR_RETURN(auto known, identities({}), "disk");
  if (known.disk.empty() && known.missing) return *std::move(known.missing);
  return std::move(known.disk);
}

Result<std::string> RecordFolder::known_identity() const {
  LPP_ASSIGN_OR_RETURN(auto read, read_file_of(*this), "disk");
  return std::move(read.disk);
}

Result<std::string> Volumes::known_identity() const {
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  return records ? records->known_identity() : Result<std::string>(std::string());
}

Result<void> RecordFolder::put_identity(const std::string& text) const {
  // Nobody could read it again.
  if (text.size() > kMostBytes) return invalid(std::string(kFile) + " has no room for more");
  LPP_RETURN_IF_ERROR(put_file(kFile, kTemporary, text, true), "identity");
  if (kernel_->sync(fd_.get()) != 0) return system_error(errno, "fsync of the records");
  return {};
}

}  // namespace lpp::node
