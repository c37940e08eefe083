// SPDX-License-Identifier: Apache-2.0
#include "agent/work_json.h"

#include <array>
#include <utility>

#include "base/strings.h"
#include "node/volume.h"
#include "operation/record.h"

namespace lpp::agent {

using nlohmann::json;
using operation::Directory;
using operation::Kind;
using operation::Progress;

namespace {

/// Nobody tries so often; the next number must exist.
constexpr int kMaxAttempt = 1'000'000'000;

template <typename Value>
using Words = std::array<std::pair<std::string_view, Value>, 6>;

constexpr Words<Progress::State> kStates = {{{"waiting", Progress::State::kWaiting},
                                             {"running", Progress::State::kRunning},
                                             {"succeeded", Progress::State::kSucceeded},
                                             {"failed", Progress::State::kFailed},
                                             {"late", Progress::State::kLate},
                                             {"ending", Progress::State::kEnding}}};
constexpr Words<Directory> kDirectories = {{{"unknown", Directory::kUnknown},
                                            {"made", Directory::kMade},
                                            {"found", Directory::kFound},
                                            {"removed", Directory::kRemoved},
                                            {"kept", Directory::kKept},
                                            {"absent", Directory::kAbsent}}};
constexpr std::array<std::pair<std::string_view, Kind>, 4> kKinds = {{{"make", Kind::kMake},
                                                                      {"takeBack", Kind::kTakeBack},
                                                                      {"remove", Kind::kRemove},
                                                                      {"resize", Kind::kResize}}};

}  // namespace

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void cut(std::string& text, std::size_t most) { text.resize(truncate_utf8(text, most).size()); }

Result<void> whole(const JsonMembers& members, std::string_view of) {
  if (members.problem().empty()) return {};
  return invalid(std::string(of) + ": " + members.problem());
}

json to_json(const operation::Space& space) {
  json object{{"size", space.size},
              {"free", space.free},
              {"inodes", space.inodes},
              {"freeInodes", space.free_inodes}};
  if (!space.filesystem.empty()) object["filesystem"] = space.filesystem;
  if (space.promises) {
    object["promises"] = {{"unused", space.promises->unused},
                          {"used", space.promises->used},
                          {"unlimited", space.promises->unlimited}};
  }
  return object;
}

namespace {

Result<std::optional<operation::Promises>> read_promises(const json& object) {
  const auto it = object.find("promises");
  if (it == object.end()) return std::optional<operation::Promises>{};
  if (!it->is_object()) return invalid("promises must be a JSON object");
  operation::Promises promises;
  JsonMembers members(*it);
  members.number<std::int64_t>("unused", promises.unused, 0);
  members.number<std::int64_t>("used", promises.used, 0);
  members.number<std::int64_t>("unlimited", promises.unlimited, 0);
  LPP_RETURN_IF_ERROR(whole(members, "promises"), "message");
  return std::optional(promises);
}

}  // namespace

Result<std::optional<operation::Space>> read_space(const json& object) {
  const auto it = object.find("space");
  if (it == object.end()) return std::optional<operation::Space>{};
  if (!it->is_object()) return invalid("space must be a JSON object");
  operation::Space space;
  JsonMembers members(*it);
  members.number<std::int64_t>("size", space.size, 0);
  members.number<std::int64_t>("free", space.free, 0);
  members.number<std::int64_t>("inodes", space.inodes, 0);
  members.number<std::int64_t>("freeInodes", space.free_inodes, 0);
  members.text("filesystem", space.filesystem);
  LPP_RETURN_IF_ERROR(whole(members, "space"), "message");
  LPP_ASSIGN_OR_RETURN(space.promises, read_promises(*it), "space");
  // Half a name could be another one's.
  if (space.filesystem.size() > kMaxDisk) space.filesystem.clear();
  return std::optional(space);
}

json to_json(const operation::Id& id) {
  return {{"kind", word_of(kKinds, id.kind)},
          {"volume", id.volume_name},
          {"ownerUid", id.owner_uid},
          {"attempt", id.attempt}};
}

Result<operation::Id> read_id(const json& object) {
  if (!object.is_object()) return invalid("an id must be a JSON object");
  operation::Id id;
  JsonMembers members(object);
  std::string kind;
  members.text("kind", kind, true);
  read_word(members, "kind", kKinds, id.kind);
  members.text("volume", id.volume_name, true);
  members.text("ownerUid", id.owner_uid);
  members.number<int>("attempt", id.attempt, 1);
  if (id.attempt > kMaxAttempt) members.complain("attempt", "is out of range");
  LPP_RETURN_IF_ERROR(whole(members, "id"), "message");
  return id;
}

json to_json(const Ended& ended) {
  json object = to_json(ended.id);
  if (!ended.serial.empty()) object["serial"] = ended.serial;
  return object;
}

Result<Ended> read_ended(const json& object) {
  LPP_ASSIGN_OR_RETURN(auto id, read_id(object), "ended");
  Ended ended{.id = std::move(id)};
  JsonMembers members(object);
  members.text("serial", ended.serial);
  LPP_RETURN_IF_ERROR(whole(members, "ended"), "message");
  cut(ended.serial, kMaxSerial);
  return ended;
}

json to_json(const Progress& progress) {
  json object{{"state", word_of(kStates, progress.state)},
              {"directory", word_of(kDirectories, progress.directory)}};
  if (!progress.message.empty()) object["message"] = truncate_utf8(progress.message, kMaxWords);
  if (!progress.reason.empty()) object["reason"] = progress.reason;
  if (progress.infeasible) object["infeasible"] = true;
  if (progress.unfit) object["unfit"] = true;
  if (progress.acts_no_more) object["actsNoMore"] = true;
  const auto& kept = progress.kept;
  if (kept.size) object["limited"] = *kept.size;
  if (kept.bytes > 0) object["limitBytes"] = kept.bytes;
  if (kept.inodes > 0) object["limitInodes"] = kept.inodes;
  if (kept.reserve) object["reserve"] = true;
  if (kept.overcommit) object["overcommit"] = true;
  if (kept.mount) object["mount"] = true;
  if (progress.space) object["space"] = to_json(*progress.space);
  if (!progress.disk.empty()) object["disk"] = progress.disk;
  return object;
}

Result<Progress> read_progress(const json& object) {
  if (!object.is_object()) return invalid("progress must be a JSON object");
  Progress progress;
  JsonMembers members(object);
  read_word(members, "state", kStates, progress.state);
  read_word(members, "directory", kDirectories, progress.directory);
  members.text("message", progress.message);
  members.text("reason", progress.reason);
  members.flag("infeasible", progress.infeasible);
  members.flag("unfit", progress.unfit);
  members.flag("actsNoMore", progress.acts_no_more);
  auto& kept = progress.kept;
  if (object.contains("limited")) members.flag("limited", kept.size.emplace());
  members.number<std::int64_t>("limitBytes", kept.bytes, 0);
  members.number<std::int64_t>("limitInodes", kept.inodes, 0);
  members.flag("reserve", kept.reserve);
  members.flag("overcommit", kept.overcommit);
  members.flag("mount", kept.mount);
  members.text("disk", progress.disk);
  LPP_RETURN_IF_ERROR(whole(members, "progress"), "message");
  if (progress.disk.size() > kMaxDisk || !node::is_id(progress.disk)) progress.disk.clear();
  LPP_ASSIGN_OR_RETURN(progress.space, read_space(object), "progress");
  cut(progress.message, kMaxWords);
  cut(progress.reason, 64);
  return progress;
}

json to_json(const operation::Operation& operation) {
  const auto text = operation::encode_operation(operation);
  return text.ok() ? json::parse(*text, nullptr, false) : json();
}

Result<operation::Operation> read_operation(const json& object) {
  const auto it = object.find("operation");
  if (it == object.end()) return invalid("operation is missing");
  return operation::decode_operation(dump(*it));
}

Result<operation::Operation> read_bare_operation(const json& object) {
  return operation::decode_operation(dump(object));
}

json to_json(const Work& work) {
  json object{{"operation", to_json(work.operation)}, {"progress", to_json(work.progress)}};
  if (!work.cluster.empty()) object["cluster"] = work.cluster;
  if (work.serial) object["serial"] = *work.serial;
  if (work.gone > 0) object["gone"] = work.gone;
  return object;
}

Result<Work> read_work(const json& object) {
  if (!object.is_object()) return invalid("a work must be a JSON object");
  Work work;
  LPP_ASSIGN_OR_RETURN(work.operation, read_operation(object), "work");
  if (work.operation.attempt > kMaxAttempt) return invalid("work: attempt is out of range");
  const auto progress = object.find("progress");
  if (progress == object.end()) return invalid("work: progress is missing");
  LPP_ASSIGN_OR_RETURN(work.progress, read_progress(*progress), "work");
  JsonMembers members(object);
  members.text("cluster", work.cluster);
  members.number<std::int64_t>("gone", work.gone, 0);
  if (object.contains("serial")) members.text("serial", work.serial.emplace());
  LPP_RETURN_IF_ERROR(whole(members, "work"), "message");
  if (work.serial) cut(*work.serial, kMaxSerial);
  return work;
}

}  // namespace lpp::agent
