// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/nodes.h"

#include <sys/resource.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/log.h"
#include "devcluster/json_names.h"
#include "devcluster/node/volume_stats.h"

namespace lpp::devcluster {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Three descriptors per container: the usual soft limit of 1024 is too low for a few hundred.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

constexpr std::string_view architecture() {
#if defined(__aarch64__)
  return "arm64";
#elif defined(__arm__)
  return "arm";
#elif defined(__riscv)
  return "riscv64";
#else
  return "amd64";
#endif
}

json ready_condition(bool ready, const std::string& now) {
  return {
      {"type", "Ready"},
      {"status", ready ? "True" : "Unknown"},
      {"reason", ready ? "KubeletReady" : "NodeStatusUnknown"},
      {"message", ready ? "kubelet is posting ready status" : "Kubelet stopped posting status."},
      {"lastHeartbeatTime", now},
      {"lastTransitionTime", now}};
}

json node_object(const std::string& name, const std::map<std::string, std::string>& labels,
                 SandboxKind sandbox, const std::string& now) {
  const std::string runtime = sandbox == SandboxKind::kBubblewrap ? "bubblewrap" : "proot";
  json all_labels{{"kubernetes.io/hostname", name},
                  {"kubernetes.io/os", "linux"},
                  {"kubernetes.io/arch", architecture()}};
  for (const auto& [key, value] : labels) all_labels[key] = value;
  return {{"metadata", {{"name", name}, {"labels", all_labels}}},
          {"status",
           {{"capacity", {{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "1000"}}},
            {"allocatable", {{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "1000"}}},
            {"conditions", json::array({ready_condition(true, now)})},
            {"addresses", json::array({{{"type", "InternalIP"}, {"address", "127.0.0.1"}},
                                       {{"type", "Hostname"}, {"address", name}}})},
            {"nodeInfo",
             {{"machineID", name},
              {"systemUUID", name},
              {"bootID", name},
              {"kernelVersion", "host"},
              {"osImage", "busybox in " + runtime},
              {"containerRuntimeVersion", runtime + "://1"},
              {"kubeletVersion", "v1.36.0"},
              {"kubeProxyVersion", ""},
              {"operatingSystem", "linux"},
              {"architecture", architecture()}}}}}};
}

}  // namespace

Result<std::unique_ptr<Nodes>> Nodes::create(Registry& registry, Clock& clock,
                                             NodesOptions options) {
  std::unique_ptr<Nodes> nodes(new Nodes(registry, clock, std::move(options)));
  if (auto ready = nodes->prepare(); !ready.ok()) return std::move(ready).error();
  return nodes;
}

Nodes::Nodes(Registry& registry, Clock& clock, NodesOptions options)
    : registry_(registry),
      clock_(clock),
      options_(std::move(options)),
      queue_(clock, "kubelet", options_.threads, [this](const std::string& key) { sync(key); }),
      pods_(
          registry, "kubelet-watch", {"pods"},
          [this](const WatchEvent& event) { queue_.add(key_of(*event.object)); },
          [this] { enqueue_all(""); }) {}

Nodes::~Nodes() { stop(); }

Result<void> Nodes::prepare() {
  raise_file_limit();
  LPP_ASSIGN_OR_RETURN(SandboxTools tools, find_sandbox_tools(options_.busybox), "nodes");
  LPP_RETURN_IF_ERROR(make_image_root(tools, options_.folder + "/image"), "busybox image");
  auto host = ProcessHost::create(std::move(tools),
                                  [this](auto id, const ProcessExit& exit) { on_exit(id, exit); });
  if (!host.ok()) return std::move(host).error();
  processes_ = *std::move(host);
  return {};
}

Result<void> Nodes::add_node(const std::string& name,
                             const std::map<std::string, std::string>& labels,
                             const std::string& machine) {
  const std::string disk = options_.folder + "/nodes/" + (machine.empty() ? name : machine);
  const std::string state = options_.folder + "/state/" + name;
  std::error_code error;
  for (const std::string& folder : {disk, state, shared_folder()}) {
    fs::create_directories(folder, error);
    if (error) return invalid("create " + folder + ": " + error.message());
  }
  auto node = std::make_unique<Node>();
  node->name = name;
  node->disk = std::make_unique<NodeDisk>(
      disk, NodeDisk::Shared{.path = options_.shared_path, .folder = shared_folder()});
  node->events = std::make_unique<EventEmitter>(registry_, clock_, "kubelet", name);
  node->services =
      std::make_unique<NodeServices>(NodeServices{.registry = registry_,
                                                  .clock = clock_,
                                                  .processes = *processes_,
                                                  .events = *node->events,
                                                  .disk = *node->disk,
                                                  .name = name,
                                                  .image_root = options_.folder + "/image",
                                                  .state_folder = state,
                                                  .known_images = options_.known_images,
                                                  .images = options_.images,
                                                  .restart_back_off = options_.restart_back_off});
  {
    MutexLock lock(mutex_);
    auto& slot = nodes_[name];
    if (slot == nullptr) {
      slot = std::move(node);
    } else {
      slot->removed = false;  // back again: its pods' runners still refer to it
      slot->faults = {};
    }
  }
  const std::string now = format_rfc3339(clock_.wall_now());
  const json object = node_object(name, labels, processes_->tools().kind, now);
  Reply reply = registry_.create("nodes", "", object);
  if (!reply.ok()) {
    return invalid("register node " + name + ": " + reply.message());
  }
  reply = registry_.patch({"nodes", "", name}, PatchType::kMerge, {{"status", object["status"]}},
                          {.subresource = "status"});
  if (!reply.ok()) return invalid("status of node " + name + ": " + reply.message());
  enqueue_all("");  // pods may have been bound to the name before
  return {};
}

void Nodes::remove_node(const std::string& name) {
  {
    MutexLock lock(mutex_);
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return;
    found->second->removed = true;
  }
  enqueue_all(name);
  const Reply reply = registry_.remove({"nodes", "", name});
  if (!reply.ok()) log::debug("node {} not deleted: {}", name, reply.message());
}

std::vector<std::string> Nodes::names() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (!node->removed) names.push_back(name);
  }
  return names;
}

std::string Nodes::disk_root(const std::string& node) const {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? "" : found->second->disk->root();
}

void Nodes::set_faults(const std::string& node, const NodeFaults& faults) {
  {
    MutexLock lock(mutex_);
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return;
    found->second->faults = faults;
  }
  for (const ObjectPtr& pod : registry_.all("pods")) {
    if (text_at(*pod, {"spec", "nodeName"}) == node) queue_.add(key_of(*pod));
  }
}

void Nodes::set_ready(const std::string& node, bool ready) {
  const std::string now = format_rfc3339(clock_.wall_now());
  const Reply reply = registry_.modify({"nodes", "", node},
                                       [&](json& object) {
                                         object["status"]["conditions"] =
                                             json::array({ready_condition(ready, now)});
                                         return true;
                                       },
                                       {.subresource = "status"});
  if (!reply.ok()) log::debug("node {}: {}", node, reply.message());
}

void Nodes::evict(const std::string& ns, const std::string& pod, const std::string& message) {
  const std::string key = ns + "/" + pod;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    found->second.evict = message;
  }
  queue_.add(key);
}

std::optional<std::string> Nodes::log(const std::string& ns, const std::string& pod,
                                      const std::string& container, bool previous) const {
  std::string path;
  {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(ns + "/" + pod);
    if (entry == entries_.end()) return std::nullopt;
    const auto& logs = previous ? entry->second.previous_logs : entry->second.logs;
    const auto found = logs.find(container);
    if (found == logs.end()) return std::nullopt;
    path = found->second;
  }
  if (!fs::exists(path)) return std::nullopt;
  return BoundedLog::read(path);
}

std::optional<std::string> Nodes::summary(const std::string& node) const {
  const NodeDisk* disk = nullptr;
  {
    MutexLock lock(mutex_);
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || found->second->removed || found->second->faults.dead) {
      return std::nullopt;
    }
    disk = found->second->disk.get();  // lives as long as the nodes
  }
  const auto resolve = [&](const std::string& path) -> std::optional<std::string> {
    const auto folder = disk->resolve(path);
    return folder.ok() ? std::optional(*folder) : std::nullopt;
  };
  return stats_summary(registry_, node, resolve).dump();
}

void Nodes::start() {
  queue_.start();
  pods_.start();
}

void Nodes::stop() {
  pods_.stop();
  if (processes_ != nullptr) processes_->stop();
  queue_.stop();
}

void Nodes::enqueue_all(const std::string& node) {
  std::vector<std::string> keys;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      if (node.empty() || entry.node == node) keys.push_back(key);
    }
  }
  for (const ObjectPtr& pod : registry_.all("pods")) {
    if (node.empty() || text_at(*pod, {"spec", "nodeName"}) == node) keys.push_back(key_of(*pod));
  }
  for (const std::string& key : keys) queue_.add(key);
}

void Nodes::on_exit(ProcessHost::Id id, const ProcessExit& exit) {
  std::string key;
  {
    MutexLock lock(mutex_);
    const auto owner = owners_.find(id);
    if (owner == owners_.end()) return;
    key = std::move(owner->second);
    owners_.erase(owner);
    if (const auto entry = entries_.find(key); entry != entries_.end()) {
      entry->second.exits.emplace_back(id, exit);
    }
  }
  queue_.add(key);
}

void Nodes::sync(const std::string& key) {
  const SplitKey name = split_key(key);
  const ObjectPtr pod = registry_.find("pods", name.ns, name.name);
  PodRunner* runner = nullptr;
  NodeFaults faults;
  bool node_removed = false;
  {
    MutexLock lock(mutex_);
    auto entry = entries_.find(key);
    if (entry == entries_.end()) {
      if (pod == nullptr) return;
      const auto node = nodes_.find(text_at(*pod, {"spec", "nodeName"}));
      if (node == nodes_.end() || node->second->removed || node->second->faults.dead) return;
      const std::string phase = text_at(*pod, {"status", "phase"});
      if ((phase == "Succeeded" || phase == "Failed") && !is_deleting(*pod)) return;
      entry = entries_.try_emplace(key).first;
      entry->second.node = node->first;
      entry->second.runner = std::make_unique<PodRunner>(*node->second->services, *pod);
      entry->second.runner->on_announce([this, key](ProcessHost::Id id) {
        MutexLock announce_lock(mutex_);
        owners_[id] = key;
      });
    }
    Node& node = *nodes_.at(entry->second.node);
    if (node.faults.dead && !node.removed) return;
    runner = entry->second.runner.get();
    faults = node.faults;
    node_removed = node.removed;
    for (const auto& [id, exit] : entry->second.exits) runner->on_exit(id, exit);
    entry->second.exits.clear();
    if (!entry->second.evict.empty()) runner->evict(std::move(entry->second.evict));
    entry->second.evict.clear();
  }
  // Another UID under the same name: the old pod's processes go first.
  const bool same = pod != nullptr && !node_removed && uid_of(*pod) == runner->uid();
  const PodRunner::Next next = runner->sync(same ? pod.get() : nullptr, faults);
  std::unique_ptr<PodRunner> finished;
  {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(key);
    if (next.done) {
      finished = std::move(entry->second.runner);
      entries_.erase(entry);
    } else if (same) {
      for (const char* list : {"initContainers", "containers"}) {
        for (const json& container : array_at(*pod, {"spec", list})) {
          const std::string container_name(text_at(container, {"name"}));
          entry->second.logs[container_name] = runner->log_path(container_name, false);
          entry->second.previous_logs[container_name] = runner->log_path(container_name, true);
        }
      }
    }
  }
  if (next.done && pod != nullptr && !same && !node_removed) queue_.add(key);
  if (next.again.has_value()) queue_.add_after(key, *next.again);
}

}  // namespace lpp::devcluster
