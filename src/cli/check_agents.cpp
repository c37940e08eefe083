// SPDX-License-Identifier: Apache-2.0
#include "cli/check_agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/protocol.h"
#include "base/paths.h"
#include "cli/check.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"

namespace lpp::cli {

using k8s::member, k8s::number, k8s::text;

namespace {

using nlohmann::json;

constexpr k8s::Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};
constexpr k8s::Resource kServices{"", "v1", "services", "Service", true};
constexpr k8s::Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies",
                                         "NetworkPolicy", true};
constexpr k8s::Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};

constexpr const char* kApply = "apply deploy/agents (docs/agents.md)";

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

const json& pod_of(const json& workload) {
  return member(member(member(workload, "spec"), "template"), "spec");
}

/// The container that runs `agent`; null = none does.
const json& agent_container(const json& daemon_set) {
  static const json none;
  for (const json& container : member(pod_of(daemon_set), "containers")) {
    if (program_arguments(container, "agent")) return container;
  }
  return none;
}

/// What --root says.
std::string root_of(const json& container) {
  const auto words = program_arguments(container, "agent").value_or(std::vector<std::string>());
  for (std::size_t i = 0; i < words.size(); ++i) {
    constexpr std::string_view kFlag = "--root";
    if (words[i] == kFlag && i + 1 < words.size()) return without_slash(words[i + 1]);
    if (words[i].starts_with("--root=")) return without_slash(words[i].substr(kFlag.size() + 1));
  }
  return "/";
}

const json& volume_of(const json& pod, const std::string& name) {
  static const json none;
  for (const json& volume : member(pod, "volumes")) {
    if (text(volume, "name") == name) return volume;
  }
  return none;
}

/// Directories of the node that the agent sees at their own place and may write to.
std::vector<std::string> seen_paths(const json& daemon_set) {
  const json& container = agent_container(daemon_set);
  const std::string root = root_of(container);
  std::vector<std::string> out;
  for (const json& mount : member(container, "volumeMounts")) {
    const json& host = member(volume_of(pod_of(daemon_set), text(mount, "name")), "hostPath");
    const std::string path = without_slash(text(host, "path"));
    std::string place = without_slash(text(mount, "mountPath"));
    if (root != "/" && place.starts_with(root)) place.erase(0, root.size());
    if (path.empty() || without_slash(place.empty() ? "/" : place) != path) continue;
    if (member(mount, "readOnly") == true || !text(mount, "subPath").empty()) continue;
    out.push_back(path);
  }
  return out;
}

bool has_token(const json& daemon_set) {
  for (const json& volume : member(pod_of(daemon_set), "volumes")) {
    for (const json& source : member(member(volume, "projected"), "sources")) {
      if (text(member(source, "serviceAccountToken"), "audience") == agent::kAudience) return true;
    }
  }
  return false;
}

bool mounts_config_map(const json& daemon_set, const std::string& name) {
  for (const json& volume : member(pod_of(daemon_set), "volumes")) {
    if (text(member(volume, "configMap"), "name") == name) return true;
    for (const json& source : member(member(volume, "projected"), "sources")) {
      if (text(member(source, "configMap"), "name") == name) return true;
    }
  }
  return false;
}

bool may_set_limits(const json& daemon_set) {
  const json& context = member(agent_container(daemon_set), "securityContext");
  if (member(context, "privileged") == true) return true;
  for (const json& one : member(member(context, "capabilities"), "add")) {
    if (one == "SYS_ADMIN" || one == "CAP_SYS_ADMIN" || one == "ALL") return true;
  }
  return false;
}

/// Base paths of the nodes in the configuration, of every class, each once.
std::set<std::string> base_paths(const config::Config& config) {
  std::set<std::string> out;
  const auto add = [&](const config::PathConfig& paths) {
    if (paths.shared()) return;
    for (const auto& [node, bases] : paths.node_path_map) {
      for (const auto& base : bases) out.insert(without_slash(base));
    }
  };
  add(config.paths);
  for (const auto& [name, paths] : config.classes) add(paths);
  return out;
}

/// "a, b, c and 3 more".
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 5;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kNamed; ++i) {
    out += (out.empty() ? "" : ", ") + names[i];
  }
  if (names.size() > kNamed) out += fmt::format(" and {} more", names.size() - kNamed);
  return out;
}

/// Something of `kind` grants the verb; a rule for certain names must have this one.
bool grants(const std::vector<ManifestObject>& objects, const char* kind, const char* resource,
            const char* verb, const std::string& name) {
  const auto has = [](const json& list, std::string_view value) {
    return std::any_of(list.begin(), list.end(),
                       [&](const json& one) { return one == value || one == "*"; });
  };
  for (const auto& one : objects) {
    if (text(one.object, "kind") != kind) continue;
    for (const json& rule : member(one.object, "rules")) {
      const json& names = member(rule, "resourceNames");
      if (has(member(rule, "resources"), resource) && has(member(rule, "verbs"), verb) &&
          (names.empty() || has(names, name))) {
        return true;
      }
    }
  }
  return false;
}

void check_daemon_set(const Installation& installation, const json& daemon_set,
                      const std::vector<std::string>& limited, Findings& findings) {
  const InstalledAgents& agents = installation.agents;
  const std::string place = kind_and_name(daemon_set);
  const json& pod = pod_of(daemon_set);
  std::string account = text(pod, "serviceAccountName");
  if (account.empty()) account = "default";
  if (account != agents.service_account) {
    findings.warning(place + ": spec.template.spec.serviceAccountName",
                     fmt::format("is {}, and the provisioner serves {} only: no agent of it is "
                                 "served",
                                 account, agents.service_account),
                     fmt::format("set it to {}, or start the daemon with "
                                 "--agents-service-account {}",
                                 agents.service_account, account));
  }
  if (!has_token(daemon_set)) {
    findings.warning(
        place,
        fmt::format("has no token for the audience {}: no agent of it is served", agent::kAudience),
        "a projected volume with a serviceAccountToken, as in "
        "deploy/agents/daemonset.yaml");
  }
  const std::string bundle = agents.service + "-ca";
  if (!mounts_config_map(daemon_set, bundle)) {
    findings.warning(place,
                     fmt::format("does not mount the ConfigMap {}: its agents do not know the "
                                 "provisioner's certificate",
                                 bundle),
                     "mount it, as in deploy/agents/daemonset.yaml");
  }
  if (!limited.empty() && !may_set_limits(daemon_set)) {
    findings.warning(
        place,
        fmt::format("lacks the capability SYS_ADMIN, which limits need: its agents "
                    "make no volume for StorageClass {}",
                    listed(limited)),
        "add it in securityContext.capabilities, as deploy/agents/daemonset.yaml says");
  }
  const json& status = member(daemon_set, "status");
  const int wanted = number(status, "desiredNumberScheduled", -1);
  const int ready = number(status, "numberReady", 0);
  if (wanted == 0) {
    findings.warning(place, "selects no node: helper pods serve all of them",
                     "look at its nodeSelector and affinity");
  } else if (ready < wanted) {
    findings.warning(
        place,
        fmt::format("{} of {} agents are not ready: claims wait for an agent whose pod "
                    "has run, helper pods serve the other nodes",
                    wanted - ready, wanted),
        fmt::format("kubectl -n {} describe daemonset {}", installation.ns,
                    text(member(daemon_set, "metadata"), "name")));
  }
}

bool leads_to_agents_port(const InstalledAgents& agents, const json& port) {
  if (port == agents.port) return true;
  return std::any_of(agents.pod_ports.begin(), agents.pod_ports.end(), [&](const json& one) {
    return port.is_string() && member(one, "name") == port &&
           member(one, "containerPort") == agents.port;
  });
}

void check_service(const Installation& installation, const json& service, Findings& findings) {
  const InstalledAgents& agents = installation.agents;
  const std::string place = fmt::format("Service {}/{}", installation.ns, agents.service);
  if (service.is_null()) {
    findings.warning(place, "does not exist: agents do not find the provisioner", kApply);
    return;
  }
  const json& selector = member(member(service, "spec"), "selector");
  for (const auto& [key, value] : selector.items()) {
    if (member(agents.pod_labels, key.c_str()) == value) continue;
    findings.warning(place + ": spec.selector",
                     fmt::format("{} does not match the pods of Deployment {}: agents do not find "
                                 "the provisioner",
                                 key, installation.deployment),
                     "use the labels of its pods");
    return;
  }
  for (const json& port : member(member(service, "spec"), "ports")) {
    const json& target = member(port, "targetPort");
    if (leads_to_agents_port(agents, target.is_null() ? member(port, "port") : target)) return;
  }
  findings.warning(place + ": spec.ports",
                   fmt::format("none leads to port {} of Deployment {}, where agents are served",
                               agents.port, installation.deployment),
                   "set targetPort to it, or to its name in the Deployment");
}

/// Whether it says who may connect to the daemon's pods. One that selects by expressions is taken
/// for one that does not.
bool is_about_daemon(const InstalledAgents& agents, const json& policy) {
  const json& spec = member(policy, "spec");
  const json& types = member(spec, "policyTypes");
  const bool of_ingress =
      types.empty() || std::find(types.begin(), types.end(), json("Ingress")) != types.end();
  const json& selector = member(spec, "podSelector");
  if (!of_ingress || !member(selector, "matchExpressions").empty()) return false;
  const json& labels = member(selector, "matchLabels");
  return std::all_of(labels.items().begin(), labels.items().end(), [&](const auto& label) {
    return member(agents.pod_labels, label.key().c_str()) == label.value();
  });
}

/// From whom is not looked at.
bool admits_agents(const InstalledAgents& agents, const json& policy) {
  for (const json& rule : member(member(policy, "spec"), "ingress")) {
    const json& ports = member(rule, "ports");
    if (ports.empty()) return true;
    for (const json& one : ports) {
      const json& port = member(one, "port");
      if (port.is_null() || leads_to_agents_port(agents, port)) return true;
      const json& end = member(one, "endPort");
      if (port.is_number() && end.is_number() && port <= agents.port && end >= agents.port) {
        return true;
      }
    }
  }
  return false;
}

void check_policies(const Installation& installation, const std::vector<json>& policies,
                    Findings& findings) {
  std::string names;
  for (const json& policy : policies) {
    if (!is_about_daemon(installation.agents, policy)) continue;
    if (admits_agents(installation.agents, policy)) return;
    names += (names.empty() ? "NetworkPolicy " : ", ") + installation.ns + "/" +
             text(member(policy, "metadata"), "name");
  }
  if (names.empty()) return;
  findings.warning(
      names + ": spec.ingress",
      fmt::format("does not admit port {} of Deployment {}: where the network enforces "
                  "it no agent reaches the provisioner, and claims wait",
                  installation.agents.port, installation.deployment),
      "admit the port, as deploy/network-policy.yaml does");
}

}  // namespace

bool has_limits(const json& storage_class) {
  return text(member(storage_class, "parameters"), provisioner::kQuotaParameter.data()) ==
         provisioner::kQuotaHard;
}

AgentObjects agents_in(const std::vector<ManifestObject>& objects,
                       const Installation& installation) {
  AgentObjects out{.daemon_sets = std::vector<json>(), .service = json(), .account = json()};
  bool roles = false;
  for (const auto& one : objects) {
    const std::string kind = text(one.object, "kind");
    const std::string name = text(member(one.object, "metadata"), "name");
    roles = roles || kind == "Role" || kind == "ClusterRole";
    if (kind == "DaemonSet") out.daemon_sets->push_back(one.object);
    if (kind == "NetworkPolicy") out.policies.push_back(one.object);
    if (kind == "Service" && name == installation.agents.service) out.service = one.object;
    if (kind == "ServiceAccount" && name == installation.agents.service_account) {
      out.account = one.object;
    }
  }
  if (!roles) return out;
  for (const Right& right : agent_rights()) {
    const bool secret = right.name == Right::Name::kAgentsSecret;
    const bool bundle = right.name == Right::Name::kAgentsConfigMap;
    const bool kube_system = right.name == Right::Name::kKubeSystem;
    const std::string name = secret        ? installation.agents.service + "-tls"
                             : bundle      ? installation.agents.service + "-ca"
                             : kube_system ? "kube-system"
                                           : "";
    if (!grants(objects, right.in_namespace ? "Role" : "ClusterRole", right.resource.data(),
                right.verb.data(), name)) {
      out.missing.push_back(
          fmt::format("{} {}{}", right.verb, right.resource, name.empty() ? "" : " " + name));
    }
  }
  return out;
}

AgentObjects agents_in(Cluster& cluster, const Installation& installation, Findings& findings) {
  AgentObjects out;
  const auto unknown = [&](const std::string& what, const Error& error) {
    findings.warning(what, "not checked: " + error.message);
  };
  if (auto all = cluster.list(kDaemonSets, installation.ns); all.ok()) {
    for (json& one : *all) one["kind"] = "DaemonSet";
    out.daemon_sets = *std::move(all);
  } else {
    unknown("DaemonSets", all.error());
  }
  if (auto all = cluster.list(kNetworkPolicies, installation.ns); all.ok()) {
    out.policies = *std::move(all);
  } else {
    unknown("NetworkPolicies", all.error());
  }
  const auto get = [&](const k8s::Resource& resource, const std::string& name,
                       std::optional<json>& into) {
    auto found = cluster.api().get(resource, {installation.ns, name});
    if (found.ok()) {
      into = *std::move(found);
    } else if (found.error().is(ErrorCode::kNotFound)) {
      into = json();
    } else {
      unknown(fmt::format("{} {}/{}", resource.kind, installation.ns, name), found.error());
    }
  };
  get(kServices, installation.agents.service, out.service);
  get(kServiceAccounts, installation.agents.service_account, out.account);
  get(k8s::kConfigMaps, installation.agents.service + "-ca", out.shown);
  return out;
}

void check_agents(const Installation& installation, const AgentObjects& seen,
                  const config::Config* config, const std::vector<std::string>& limited,
                  Findings& findings) {
  const InstalledAgents& agents = installation.agents;
  findings.checked.emplace_back("agents");
  const std::string deployment = "Deployment " + installation.deployment;
  if (installation.ns != installation.daemon_ns) {
    findings.warning(deployment,
                     fmt::format("--agents serves agents in its own namespace only, and its helper "
                                 "pods are in {}: no agent finds it",
                                 installation.ns),
                     "run daemon and helper pods in one namespace, or without --agents");
    return;
  }
  for (const std::string& right : seen.missing) {
    findings.warning(deployment,
                     fmt::format("no role in the files allows to {}: no agent is served", right),
                     "apply the Role and ClusterRole of deploy/agents/rbac.yaml");
  }
  if (seen.account && seen.account->is_null()) {
    findings.warning(fmt::format("ServiceAccount {}/{}", installation.ns, agents.service_account),
                     "does not exist: no agent is served", kApply);
  }
  if (seen.service) check_service(installation, *seen.service, findings);
  check_policies(installation, seen.policies, findings);
  if (seen.shown && seen.shown->is_null()) {
    findings.warning(
        fmt::format("ConfigMap {}/{}-ca", installation.ns, agents.service),
        "does not exist: the provisioner has not made a certificate yet",
        fmt::format("its log says why: kubectl -n {} logs deployment/{}", installation.daemon_ns,
                    installation.deployment.substr(installation.deployment.find('/') + 1)));
  }
  if (!seen.daemon_sets) return;
  std::vector<const json*> ours;
  for (const json& one : *seen.daemon_sets) {
    if (!agent_container(one).is_null()) ours.push_back(&one);
  }
  if (ours.empty()) {
    findings.warning(deployment,
                     fmt::format("is started with --agents, and no DaemonSet in namespace {} runs "
                                 "them: helper pods serve every node",
                                 installation.ns),
                     kApply);
    return;
  }
  std::vector<std::string> mounted;
  std::string names;
  for (const json* one : ours) {
    check_daemon_set(installation, *one, limited, findings);
    const auto paths = seen_paths(*one);
    mounted.insert(mounted.end(), paths.begin(), paths.end());
    names += (names.empty() ? "" : ", ") + kind_and_name(*one);
  }
  if (config == nullptr) return;
  std::vector<std::string> strange = mounted;
  const auto bases = base_paths(*config);
  std::erase_if(strange, [&](const std::string& path) {
    return std::any_of(bases.begin(), bases.end(),
                       [&](const std::string& base) { return overlaps(base, path); });
  });
  if (!strange.empty()) {
    findings.warning(names, "mounts " + listed(strange) + ", which config.json has for no node",
                     "take it out: the agents can write there");
  }
  std::vector<std::string> unseen;
  for (const std::string& base : bases) {
    if (std::none_of(mounted.begin(), mounted.end(),
                     [&](const std::string& path) { return is_at_or_below(base, path); })) {
      unseen.push_back(base);
    }
  }
  if (unseen.empty()) return;
  findings.warning(names,
                   fmt::format("does not mount {}: helper pods serve what config.json has there",
                               listed(unseen)),
                   "add a hostPath volume for each and mount it at the same place, writable, as in "
                   "deploy/agents/daemonset.yaml");
}

}  // namespace lpp::cli
