// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "cli/check.h"
#include "cli/check_agents.h"
#include "cli/manifests.h"
#include "cli/volume_rows.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

using nlohmann::json;

constexpr k8s::Resource kSubjectReviews{"authorization.k8s.io", "v1", "subjectaccessreviews",
                                        "SubjectAccessReview", false};
constexpr k8s::Resource kSelfReviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                     "SelfSubjectAccessReview", false};

/// Whether a ServiceAccount has a right; asked by whoever runs the command.
Result<bool> has_right(Cluster& cluster, const Installation& installation, const Right& right) {
  const auto parts = split(right.resource, '/');
  json attributes{{"verb", right.verb}, {"group", right.group}, {"resource", parts[0]}};
  if (parts.size() > 1) attributes["subresource"] = parts[1];
  if (right.in_namespace) attributes["namespace"] = installation.ns;
  if (right.name == Right::Name::kConfigMap) attributes["name"] = installation.config_map;
  if (right.name == Right::Name::kLease) attributes["name"] = installation.lease.name;
  const std::string& service = installation.agents.service;
  if (right.name == Right::Name::kAgentsSecret) attributes["name"] = service + "-tls";
  if (right.name == Right::Name::kAgentsConfigMap) attributes["name"] = service + "-ca";
  if (right.name == Right::Name::kKubeSystem) attributes["name"] = "kube-system";
  if (right.resource == "leases") attributes["namespace"] = installation.lease.ns;
  json spec{{"resourceAttributes", std::move(attributes)}};
  const bool self = cluster.source() == "in-cluster";  // then it is the daemon's own account
  const k8s::Resource& resource = self ? kSelfReviews : kSubjectReviews;
  if (!self) {
    spec["user"] = fmt::format("system:serviceaccount:{}:{}", installation.daemon_ns,
                               installation.service_account);
    spec["groups"] = {"system:serviceaccounts", "system:serviceaccounts:" + installation.daemon_ns,
                      "system:authenticated"};
  }
  const json review{
      {"apiVersion", resource.api_version()}, {"kind", resource.kind}, {"spec", std::move(spec)}};
  LPP_ASSIGN_OR_RETURN(const auto answer, cluster.api().create(resource, "", review),
                       "ask for the daemon's permissions");
  return member(member(answer, "status"), "allowed") == true;
}

std::string resource_name(const Right& right) {
  return right.group.empty() ? std::string(right.resource)
                             : fmt::format("{}.{}", right.resource, right.group);
}

void check_rights(Cluster& cluster, const Installation& installation,
                  const std::vector<Right>& rights, std::string_view whose, std::string_view fix,
                  Findings& findings) {
  const std::string place =
      fmt::format("ServiceAccount {}/{}", installation.daemon_ns, installation.service_account);
  // One finding for the verbs of a resource that are missing for the same reason.
  std::map<std::pair<std::string, bool>, std::vector<const Right*>> missing;
  for (const Right& right : rights) {
    const auto allowed = has_right(cluster, installation, right);
    if (!allowed.ok()) {
      findings.warning(place, "permissions are not checked: " + allowed.error().message,
                       "run it as an administrator, who may create subjectaccessreviews");
      return;
    }
    if (!*allowed) missing[{resource_name(right), right.in_namespace}].push_back(&right);
  }
  findings.checked.push_back(counted(rights.size(), "permission") + std::string(whose));
  for (const auto& [what, list] : missing) {
    std::string verbs;
    std::string_view otherwise = list.front()->otherwise;
    for (const Right* right : list) {
      verbs += (verbs.empty() ? "" : ", ") + std::string(right->verb);
      if (right->otherwise.empty()) otherwise = {};
    }
    Finding finding{.problem = otherwise.empty(),
                    .place = place,
                    .message = fmt::format("may not {} {}{}", verbs, what.first,
                                           what.second ? " in namespace " + installation.ns : ""),
                    .fix = std::string(fix)};
    if (!otherwise.empty()) finding.message += fmt::format("; {}", otherwise);
    findings.all.push_back(std::move(finding));
  }
}

/// A right that only these classes need.
void check_release_right(Cluster& cluster, const Installation& installation,
                         const std::string& classes, Findings& findings) {
  const auto allowed = has_right(cluster, installation, {"", "persistentvolumeclaims", "delete"});
  if (!allowed.ok() || *allowed) return;  // check_rights() has told why it is not known
  findings.warning(
      fmt::format("ServiceAccount {}/{}", installation.daemon_ns, installation.service_account),
      fmt::format("may not delete persistentvolumeclaims; StorageClass {} has onNodeLost: release, "
                  "and claims of deleted nodes stay without it",
                  classes),
      "kubectl apply -f deploy/node-lost.yaml");
}

/// `all_known`: `found` is every Deployment that there is.
void check_installation(const std::vector<Installation>& found, bool all_known,
                        const Installation& chosen, Findings& findings) {
  std::string others;
  for (const Installation& one : found) {
    if (one.provisioner_name != chosen.provisioner_name || one.replicas == 0) continue;
    others += (others.empty() ? "" : ", ") + one.deployment;
  }
  if (others.find(", ") != std::string::npos) {
    findings.problem("Deployments " + others,
                     fmt::format("all serve provisioner {}: each claim is worked on twice",
                                 chosen.provisioner_name),
                     "keep one (K3s brings its own: start it with --disable local-storage)");
  }
  if (chosen.deployment.empty()) {
    if (!all_known) return;
    findings.warning("cluster",
                     fmt::format("no Deployment runs provisioner {}", chosen.provisioner_name),
                     "install it: docs/install.md");
    return;
  }
  findings.checked.push_back("Deployment " + chosen.deployment);
  if (chosen.replicas > 0 && chosen.ready == 0) {
    findings.problem("Deployment " + chosen.deployment, "no replica is ready",
                     fmt::format("kubectl -n {} describe pods; kubectl -n {} logs deployment/{}",
                                 chosen.daemon_ns, chosen.daemon_ns,
                                 chosen.deployment.substr(chosen.deployment.find('/') + 1)));
  }
}

/// Something that could not be read: told, but no reason to stop.
void not_checked(const std::string& what, const Error& error, Findings& findings) {
  findings.warning(what, "not checked: " + error.message);
}

void check_stuck(Cluster& cluster, const Installation& installation, Findings& findings) {
  ClusterView view;
  if (auto loaded = load(cluster, installation, {}, view); !loaded.ok()) {
    return not_checked("volumes", loaded.error(), findings);
  }
  const auto rows = volume_rows(view);
  findings.checked.push_back(counted(rows.size(), "volume"));
  for (const VolumeRow& row : rows) {
    if (!row.problem) continue;
    const std::string name = row.claim.name.empty() ? row.volume : row.claim.to_string();
    findings.warning(fmt::format("volume {} ({})", name, row.phase), one_line(row.why), row.next);
  }
}

/// The configuration in force: of the ConfigMap, unless the daemon was given the text itself.
std::optional<config::Config> check_own_config(Cluster& cluster, const Installation& installation,
                                               Findings& findings) {
  std::optional<config::Config> config;
  const std::string place =
      fmt::format("ConfigMap {}/{}", installation.ns, installation.config_map);
  const auto found =
      cluster.api().get(k8s::kConfigMaps, {installation.ns, installation.config_map});
  if (found.ok()) {
    check_config_map(*found, place, installation.allow_unsafe_template, config, findings);
  } else if (found.error().is(ErrorCode::kNotFound) && !installation.deployment.empty()) {
    findings.problem(place, "does not exist", "apply it, or name the right one: --configmap-name");
  } else {
    not_checked(place, found.error(), findings);
  }
  std::string config_place = place + " config.json";
  if (installation.config_flag.find('{') != std::string::npos) {
    config_place = fmt::format("Deployment {}: --config", installation.deployment);
    config = check_config(config_place, installation.config_flag, findings);
  }
  if (found.ok() && config) {
    check_helper_image(installation, *found, *config, config_place, findings);
  }
  return config;
}

}  // namespace

std::vector<Right> needed_rights() {
  std::vector<Right> out;
  const auto add = [&](std::string_view group, std::string_view resource,
                       std::initializer_list<std::string_view> verbs, bool in_namespace,
                       std::string_view otherwise = {}, Right::Name name = Right::Name::kAny) {
    for (const std::string_view verb : verbs) {
      out.push_back({group, resource, verb, in_namespace, otherwise, name});
    }
  };
  add("", "pods", {"get", "list", "watch", "create", "delete"}, true);
  add("", "pods/log", {"get"}, true, "the output of a script that fails is not reported");
  add("", "configmaps", {"get", "list", "watch"}, true, {}, Right::Name::kConfigMap);
  constexpr std::string_view kNoElection = "--leader-elect does not work";
  add("coordination.k8s.io", "leases", {"create"}, true, kNoElection);
  add("coordination.k8s.io", "leases", {"get", "update"}, true, kNoElection, Right::Name::kLease);
  add("", "nodes", {"get", "list", "watch"}, false);
  add("storage.k8s.io", "storageclasses", {"list", "watch"}, false);
  add("", "persistentvolumeclaims", {"list", "watch"}, false);
  add("", "persistentvolumeclaims", {"patch"}, false,
      "a claim on a node without a path is not given back to the scheduler, and none is bound");
  add("", "persistentvolumes", {"get", "list", "watch", "create", "patch", "delete"}, false);
  add("", "persistentvolumeclaims/status", {"patch"}, false,
      "claims are bound by the control plane alone, slowly when there are many, and none grows");
  add("", "persistentvolumes/status", {"patch"}, false,
      "claims are bound by the control plane alone, slowly when there are many");
  add("", "events", {"create", "patch"}, false, "nothing is reported to users");
  return out;
}

std::vector<Right> agent_rights() {
  constexpr std::string_view kNoAgents = "no agent is served";
  using Name = Right::Name;
  return {{"authentication.k8s.io", "tokenreviews", "create", false, kNoAgents},
          {"", "namespaces", "get", false,
           "agents cannot tell this cluster's disks from another one's, and sweep nothing",
           Name::kKubeSystem},
          {"", "secrets", "create", true, kNoAgents},
          {"", "secrets", "get", true, kNoAgents, Name::kAgentsSecret},
          {"", "secrets", "update", true, kNoAgents, Name::kAgentsSecret},
          {"", "configmaps", "create", true, kNoAgents},
          {"", "configmaps", "get", true, kNoAgents, Name::kAgentsConfigMap},
          {"", "configmaps", "update", true, kNoAgents, Name::kAgentsConfigMap}};
}

void check_cluster(Cluster& cluster, Context& context, const FlagReader& flags,
                   const FileChecks& files, Findings& findings) {
  std::vector<Installation> found;
  const auto deployments = cluster.list(kDeployments);
  if (deployments.ok()) {
    found = installations(*deployments, context);
  } else {
    not_checked("Deployments", deployments.error(), findings);
  }
  const Installation installation = choose_installation(found, flags);
  tell_which(installation, context);
  check_installation(found, deployments.ok(), installation, findings);

  const std::string ns_place = "Namespace " + installation.ns;
  const auto ns = cluster.api().get(k8s::kNamespaces, {"", installation.ns});
  if (ns.ok()) {
    findings.checked.push_back(ns_place);
    check_namespace(*ns, ns_place, findings);
  } else if (ns.error().is(ErrorCode::kNotFound)) {
    findings.warning(ns_place, "does not exist",
                     "install the provisioner (docs/install.md), or name its namespace with "
                     "--provisioner-namespace");
  } else {
    not_checked(ns_place, ns.error(), findings);
  }
  // The daemon's own account may ask for its rights and not for the namespace.
  if (ns.ok() || !ns.error().is(ErrorCode::kNotFound)) {
    check_rights(cluster, installation, needed_rights(), "",
                 "apply the Role and ClusterRole of deploy/local-path-storage.yaml", findings);
    if (installation.agents.on) {
      check_rights(cluster, installation, agent_rights(), " for agents",
                   "apply the Role and ClusterRole of deploy/agents/rbac.yaml", findings);
    }
  }

  std::optional<config::Config> config = files.config;
  if (!files.has_config) config = check_own_config(cluster, installation, findings);
  const config::Config* const known = config ? &*config : nullptr;

  std::vector<std::string> classes;
  std::vector<std::string> limited;
  std::string letting_go;
  if (const auto all = cluster.list(k8s::kStorageClasses); all.ok()) {
    for (const json& one : *all) {
      if (!installation.names().has(text(one, "provisioner"))) continue;
      classes.push_back(text(member(one, "metadata"), "name"));
      json object = one;
      object["kind"] = "StorageClass";
      check_class(object, kind_and_name(object), known, findings, installation.agents.on);
      if (has_limits(one)) limited.push_back(classes.back());
      if (text(member(one, "parameters"), provisioner::kOnNodeLostParameter.data()) == "release") {
        letting_go += (letting_go.empty() ? "" : ", ") + classes.back();
      }
    }
    if (!letting_go.empty()) {
      check_release_right(cluster, installation, letting_go, findings);
    }
    findings.checked.push_back(counted(classes.size(), "StorageClass"));
    if (classes.empty()) {
      findings.warning(
          "cluster",
          fmt::format("no StorageClass names provisioner {}", to_string(installation.names())),
          "apply one, as in deploy/local-path-storage.yaml");
    }
  } else {
    not_checked("StorageClasses", all.error(), findings);
  }

  if (installation.agents.on) {
    check_agents(installation, agents_in(cluster, installation, findings), known, limited,
                 findings);
  }

  if (const auto all = cluster.list(k8s::kNodes, "", {.metadata_only = true}); all.ok()) {
    std::set<std::string> nodes;
    for (const json& node : *all) nodes.insert(text(member(node, "metadata"), "name"));
    findings.checked.push_back(counted(nodes.size(), "node"));
    if (known != nullptr) check_nodes(*known, nodes, classes, "config.json", findings);
  } else {
    not_checked("nodes", all.error(), findings);
  }
  check_stuck(cluster, installation, findings);
}

}  // namespace lpp::cli
