// SPDX-License-Identifier: Apache-2.0
#include "agent/listed.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/protocol.h"
#include "base/json_members.h"
#include "node/volume.h"

namespace lpp::agent {

namespace {

using nlohmann::json;

/// Names of Kubernetes, with their namespace, are shorter.
constexpr std::size_t kMaxName = 512;
constexpr std::size_t kMaxUid = 64;

std::string_view word_for(Listed::State state) {
  if (state == Listed::State::kMaking) return "making";
  return state == Listed::State::kRemoving ? "removing" : "present";
}

Result<void> all_right(const JsonMembers& members, std::string_view of) {
  if (members.problem().empty()) return {};
  return invalid(std::string(of) + ": " + members.problem());
}

}  // namespace

std::string base_of_leftover(const Listed& listed) {
  const auto at = listed.path.find(std::string("/") + node::kRecordFolder + "/");
  return at == std::string::npos ? std::string() : listed.path.substr(0, at);
}

json to_json(const Use& use) {
  json object{{"path", use.path}};
  if (!use.usage) {
    object["gone"] = true;
    return object;
  }
  object["bytes"] = use.usage->bytes;
  if (use.usage->limit_bytes > 0) object["limitBytes"] = use.usage->limit_bytes;
  if (use.usage->inodes) object["inodes"] = *use.usage->inodes;
  if (use.usage->limit_inodes > 0) object["limitInodes"] = use.usage->limit_inodes;
  return object;
}

Result<Use> read_use(const json& object) {
  if (!object.is_object()) return invalid("a use must be a JSON object");
  Use use;
  operation::Usage usage;
  bool gone = false;
  JsonMembers members(object);
  members.text("path", use.path, true);
  if (use.path.size() > kMaxPath) members.complain("path", "is too long");
  members.flag("gone", gone);
  members.number<std::int64_t>("bytes", usage.bytes, 0);
  members.number<std::int64_t>("limitBytes", usage.limit_bytes, 0);
  if (object.contains("inodes")) members.number<std::int64_t>("inodes", usage.inodes.emplace(), 0);
  members.number<std::int64_t>("limitInodes", usage.limit_inodes, 0);
  LPP_RETURN_IF_ERROR(all_right(members, "use"), "message");
  if (!gone) use.usage = usage;
  return use;
}

json to_json(const Listed& listed) {
  json object{{"path", listed.path}, {"since", listed.since}};
  if (!listed.id.empty()) object["id"] = listed.id;
  if (!listed.claim.empty()) object["claim"] = listed.claim;
  if (!listed.uid.empty()) object["uid"] = listed.uid;
  if (listed.size > 0) object["size"] = listed.size;
  if (listed.used) object["used"] = *listed.used;
  if (listed.limit > 0) object["limit"] = listed.limit;
  if (listed.state != Listed::State::kPresent) object["state"] = word_for(listed.state);
  if (!listed.cluster.empty()) object["cluster"] = listed.cluster;
  return object;
}

Result<Listed> read_listed(const json& object) {
  if (!object.is_object()) return invalid("a directory must be a JSON object");
  Listed listed;
  JsonMembers members(object);
  std::string state;
  members.text("path", listed.path, true);
  members.text("id", listed.id);
  members.text("claim", listed.claim);
  members.text("uid", listed.uid);
  members.text("cluster", listed.cluster);
  members.text("state", state);
  members.number<std::int64_t>("size", listed.size, 0);
  if (object.contains("used")) members.number<std::int64_t>("used", listed.used.emplace(), 0);
  members.number<std::int64_t>("limit", listed.limit, 0);
  members.number<std::int64_t>("since", listed.since, 0);
  const auto check = [&](const char* name, const std::string& text, std::size_t most) {
    if (text.size() > most) members.complain(name, "is too long");
  };
  check("path", listed.path, kMaxPath);
  check("id", listed.id, kMaxName);
  check("claim", listed.claim, kMaxName);
  check("uid", listed.uid, kMaxUid);
  check("cluster", listed.cluster, kMaxUid);
  // One that this version does not know counts as in its place, where nothing is swept.
  for (const Listed::State one : {Listed::State::kMaking, Listed::State::kRemoving}) {
    if (state == word_for(one)) listed.state = one;
  }
  LPP_RETURN_IF_ERROR(all_right(members, "directory"), "message");
  return listed;
}

json to_json(const InventoryPart& part) {
  json list = json::array();
  for (const Listed& one : part.directories) list.push_back(to_json(one));
  json object{{"directories", std::move(list)}};
  if (part.first) object["first"] = true;
  if (part.last) object["last"] = true;
  if (part.left_out > 0) object["leftOut"] = part.left_out;
  return object;
}

Result<InventoryPart> read_inventory(const json& object, std::vector<std::string>& unread) {
  if (!object.is_object()) return invalid("an inventory must be a JSON object");
  InventoryPart part;
  JsonMembers members(object);
  members.flag("first", part.first);
  members.flag("last", part.last);
  members.number<std::int64_t>("leftOut", part.left_out, 0);
  constexpr std::int64_t kMostLeftOut = 1'000'000'000;
  part.left_out = std::min(part.left_out, kMostLeftOut);
  LPP_RETURN_IF_ERROR(all_right(members, "inventory"), "message");
  const auto list = object.find("directories");
  if (list == object.end()) return part;
  if (!list->is_array()) return invalid("directories must be an array");
  if (list->size() > kMaxListed) return invalid("directories are too many");
  for (const json& item : *list) {
    auto one = read_listed(item);
    if (one.ok()) {
      part.directories.push_back(*std::move(one));
    } else {
      unread.push_back("directories: " + one.error().message.substr(0, kMaxWords));
    }
  }
  return part;
}

}  // namespace lpp::agent
