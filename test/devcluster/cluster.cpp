// SPDX-License-Identifier: Apache-2.0
#include "devcluster/cluster.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "devcluster/apiserver/resources.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;
namespace fs = std::filesystem;

Result<std::unique_ptr<Cluster>> Cluster::start(ClusterOptions options) {
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(options)));
  if (auto started = cluster->start_parts(); !started.ok()) return std::move(started).error();
  return cluster;
}

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)),
      temporary_(options_.folder.empty()),
      registry_(options_.registry) {}

Cluster::~Cluster() {
  stop();
  std::error_code error;
  if (temporary_ && !folder_.empty()) fs::remove_all(folder_, error);
}

Result<void> Cluster::start_parts() {
  std::error_code error;
  folder_ = options_.folder;
  if (temporary_)
    folder_ = (fs::temp_directory_path() / ("lpp-devcluster-" + random_uuid())).string();
  fs::create_directories(folder_, error);
  if (error) return invalid("create " + folder_ + ": " + error.message());
  folder_ = fs::canonical(folder_, error).string();

  NodesOptions nodes{.folder = folder_,
                     .known_images = options_.known_images,
                     .images = options_.images,
                     .shared_path = options_.shared_path,
                     .restart_back_off = options_.restart_back_off};
  auto made = Nodes::create(registry_, clock_, std::move(nodes));
  if (!made.ok()) return std::move(made).error();
  nodes_ = *std::move(made);

  ApiServer::Options server = options_.server;
  server.port = options_.port;
  server_ = std::make_unique<ApiServer>(registry_, server);
  server_->set_log_source(
      [this](const std::string& ns, const std::string& pod, const std::string& container) {
        return nodes_->log(ns, pod, container);
      });
  server_->set_kubelets([this](const std::string& node, const std::string& path) {
    return path == "stats/summary" ? nodes_->summary(node) : std::optional<std::string>();
  });
  LPP_RETURN_IF_ERROR(server_->start(), "API server");
  kubeconfig_ = folder_ + "/kubeconfig";
  LPP_RETURN_IF_ERROR(server_->write_kubeconfig(kubeconfig_), "kubeconfig");

  controllers_ = std::make_unique<Controllers>(registry_, clock_);
  if (options_.run_controllers) start_controllers();
  nodes_->start();
  for (const std::string& name : options_.nodes) {
    if (auto added = nodes_->add_node(name); !added.ok()) return added;
  }
  return {};
}

void Cluster::stop() {
  if (controllers_ != nullptr) controllers_->stop();
  if (nodes_ != nullptr) nodes_->stop();
  if (server_ != nullptr) server_->stop();
}

Result<std::string> Cluster::service_account_kubeconfig(const std::string& ns,
                                                        const std::string& name) {
  std::string path = folder_ + "/kubeconfig-" + name;
  const std::string token = server_->mint_service_account_token(ns, name);
  if (auto written = server_->write_kubeconfig(path, token, ns); !written.ok()) {
    return std::move(written).error();
  }
  return path;
}

Result<void> Cluster::apply(const json& object) {
  const ResourceInfo* info = find_kind(text_at(object, {"kind"}));
  if (info == nullptr) {
    return invalid("unknown kind \"" + text_at(object, {"kind"}) + '"');
  }
  const std::string ns =
      info->namespaced ? text_at(object, {"metadata", "namespace"}, "default") : "";
  Reply reply = registry_.create(info->plural, ns, object);
  if (reply.reason() == "AlreadyExists") {
    reply = registry_.update({info->plural, ns, name_of(object)}, object);
  }
  if (reply.ok()) return {};
  return invalid(info->kind + " " + key_of(object) + ": " + reply.message());
}

std::vector<std::string> Cluster::events_about(const std::string& kind, const std::string& ns,
                                               const std::string& name) const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const ObjectPtr& event : registry_.all("events")) {
    if (text_at(*event, {"involvedObject", "kind"}) != kind ||
        text_at(*event, {"involvedObject", "namespace"}) != ns ||
        text_at(*event, {"involvedObject", "name"}) != name) {
      continue;
    }
    const std::string time(text_at(*event, {"lastTimestamp"}));
    std::string line = time.size() >= 19 ? time.substr(11, 8) : time;
    for (const auto& part : {text_at(*event, {"type"}), text_at(*event, {"reason"})}) {
      line.append(" ").append(part);
    }
    line.append(": ").append(text_at(*event, {"message"}));
    found.emplace_back(text_at(*event, {"metadata", "creationTimestamp"}) + line, line);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> lines;
  lines.reserve(found.size());
  for (auto& [order, line] : found) lines.push_back(std::move(line));
  return lines;
}

}  // namespace lpp::devcluster
