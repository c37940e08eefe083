// SPDX-License-Identifier: Apache-2.0
#include "cli/orphans.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/paths.h"
#include "cli/daemon_pages.h"
#include "cli/text.h"
#include "k8s/json_access.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

k8s::ObjectKey claim_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == text.size()) return {};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

std::optional<std::uint64_t> count(const nlohmann::json& object, const char* name) {
  const auto& value = member(object, name);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

}  // namespace

void add_orphans(const nlohmann::json& page, Orphans& to) {
  for (const auto& one : member(page, "orphans")) {
    Orphan orphan{.node = text(one, "node"),
                  .path = text(one, "path"),
                  .volume = text(one, "volume"),
                  .claim = claim_of(text(one, "claim")),
                  .uid = text(one, "uid"),
                  .cluster = text(one, "cluster"),
                  .disk = text(one, "disk"),
                  .why = text(one, "why"),
                  .message = text(one, "message")};
    if (orphan.node.empty() || !orphan.path.starts_with('/')) continue;
    if (find_orphan(to.listed, orphan.node, orphan.path) != nullptr) continue;
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62U;
    const auto bytes = [&](const char* name) {
      return static_cast<std::int64_t>(std::min(count(one, name).value_or(0), kMostBytes));
    };
    orphan.size = bytes("size");
    orphan.limit = bytes("limit");
    orphan.used = count(one, "used");
    constexpr std::uint64_t kMostSeconds = std::uint64_t{1} << 33U;  // beyond it is no time
    orphan.since =
        static_cast<std::int64_t>(std::min(count(one, "since").value_or(0), kMostSeconds));
    to.listed.push_back(std::move(orphan));
  }
  std::sort(to.listed.begin(), to.listed.end(), [](const Orphan& a, const Orphan& b) {
    return std::tie(a.node, a.path) < std::tie(b.node, b.path);
  });
  const auto& left_out = member(page, "leftOut");
  if (!left_out.is_object()) return;
  for (const auto& [node, more] : left_out.items()) {
    if (more.is_number_unsigned()) to.left_out[node] = more.get<std::uint64_t>();
  }
}

Result<Orphans> ask_for_orphans(Cluster& cluster, const Installation& installation) {
  Orphans all;
  const auto take = [&](const nlohmann::json& page) { add_orphans(page, all); };
  if (const auto asked = ask_daemon_pods(cluster, installation.daemon_ns, "/orphans", take);
      !asked.ok()) {
    const bool forbidden = asked.error().is(ErrorCode::kForbidden);
    return Error(asked.error())
        .wrap(forbidden ? "which directories are nobody's the provisioner knows; to ask it needs "
                          "the permission to get pods/proxy in its namespace"
                        : "the provisioner does not say which directories are nobody's");
  }
  return all;
}

std::string more_left_out(const std::string& node) {
  return "note: there is more on node " + one_line(node) +
         " than the provisioner lists: run this again in ten minutes\n";
}

const Orphan* find_orphan(const std::vector<Orphan>& orphans, const std::string& node,
                          const std::string& path) {
  const auto it = std::find_if(orphans.begin(), orphans.end(), [&](const Orphan& one) {
    return one.node == node && one.path == path;
  });
  return it == orphans.end() ? nullptr : &*it;
}

const Orphan* find_orphan_near(const std::vector<Orphan>& orphans, const std::string& node,
                               const std::string& path) {
  const auto it = std::find_if(orphans.begin(), orphans.end(), [&](const Orphan& one) {
    return one.node == node && one.why != Orphan::kNoRecord &&
           (strictly_below(one.path, path) || strictly_below(path, one.path));
  });
  return it == orphans.end() ? nullptr : &*it;
}

}  // namespace lpp::cli
