// SPDX-License-Identifier: Apache-2.0
#include "cli/orphans.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/daemon_pages.h"
#include "cli/json_access.h"

namespace lpp::cli {

namespace {

k8s::ObjectKey claim_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == text.size()) return {};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace

std::vector<Orphan> orphans_in(const nlohmann::json& page) {
  std::vector<Orphan> all;
  for (const auto& one : member(page, "orphans")) {
    Orphan orphan{.node = text(one, "node"),
                  .path = text(one, "path"),
                  .volume = text(one, "volume"),
                  .claim = claim_of(text(one, "claim")),
                  .uid = text(one, "uid"),
                  .disk = text(one, "disk"),
                  .why = text(one, "why"),
                  .message = text(one, "message")};
    const auto& size = member(one, "size");
    if (size.is_number_integer()) orphan.size = std::max<std::int64_t>(0, size.get<std::int64_t>());
    if (!orphan.node.empty() && orphan.path.starts_with('/')) all.push_back(std::move(orphan));
  }
  return all;
}

Result<std::vector<Orphan>> ask_for_orphans(Cluster& cluster, const Installation& installation) {
  std::vector<Orphan> all;
  const auto take = [&](const nlohmann::json& page) {
    for (Orphan& one : orphans_in(page)) {
      if (find_orphan(all, one.node, one.path) == nullptr) all.push_back(std::move(one));
    }
  };
  LPP_RETURN_IF_ERROR(ask_daemon_pods(cluster, installation.daemon_ns, "/orphans", take),
                      "which directories are nobody's is not known");
  return all;
}

const Orphan* find_orphan(const std::vector<Orphan>& orphans, const std::string& node,
                          const std::string& path) {
  const auto it = std::find_if(orphans.begin(), orphans.end(), [&](const Orphan& one) {
    return one.node == node && one.path == path;
  });
  return it == orphans.end() ? nullptr : &*it;
}

}  // namespace lpp::cli
