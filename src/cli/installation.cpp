// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "cli/cluster.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"

namespace lpp::cli {

using k8s::member, k8s::number, k8s::text;

namespace {

using nlohmann::json;

constexpr std::string_view kProgram = "local-path-provisioner";
constexpr std::array<std::string_view, 2> kOtherPrograms{"rancher/local-path-provisioner",
                                                         "kindest/local-path-provisioner"};

std::vector<std::string> texts(const json& list) {
  std::vector<std::string> out;
  for (const json& item : list) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<std::string> words_of(const json& container) {
  std::vector<std::string> words = texts(member(container, "command"));
  const std::vector<std::string> args = texts(member(container, "args"));
  words.insert(words.end(), args.begin(), args.end());
  return words;
}

bool is_our_program(const json& container, const std::vector<std::string>& words) {
  return (!words.empty() && words.front().ends_with(kProgram)) ||
         text(container, "image").find(kProgram) != std::string::npos;
}

/// The words after `start`, which is what the image does by itself; nullopt when the container does
/// not run the daemon.
std::optional<std::vector<std::string>> daemon_arguments(const json& container) {
  const auto words = words_of(container);
  if (words.empty() && is_our_program(container, words)) return std::vector<std::string>();
  return program_arguments(container, "start");
}

std::map<std::string, std::string> environment(const json& container, const std::string& ns) {
  std::map<std::string, std::string> out;
  for (const json& entry : member(container, "env")) {
    const json& from = member(entry, "valueFrom");
    if (text(member(from, "fieldRef"), "fieldPath") == "metadata.namespace") {
      out[text(entry, "name")] = ns;
    } else if (from.is_null()) {
      out[text(entry, "name")] = text(entry, "value");
    }
  }
  return out;
}

std::optional<Installation> installation(const json& deployment, const json& container,
                                         const Command& start) {
  auto arguments = daemon_arguments(container);
  if (!arguments) return std::nullopt;
  const json& meta = member(deployment, "metadata");
  const json& spec = member(deployment, "spec");
  const json& pod = member(member(spec, "template"), "spec");
  const std::string ns = text(meta, "namespace").empty() ? "default" : text(meta, "namespace");

  const auto groups = all_flags(start);
  const auto given = parse_flags(*arguments, groups);
  const auto variables = environment(container, ns);
  const GetEnv getenv = [&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
  const Given nothing;
  FlagReader flags(given.ok() ? *given : nothing, getenv, groups);
  Installation out;
  out.provisioner_name = flags.text("provisioner-name");
  out.capacity_provisioner_name = flags.text("capacity-provisioner-name");
  out.ns = flags.text("namespace");
  out.config_map = flags.text("configmap-name");
  out.config_flag = flags.text("config");
  out.allow_unsafe_template = flags.boolean("allow-unsafe-helper-pod-template");
  out.service_account = text(pod, "serviceAccountName");
  if (out.service_account.empty()) out.service_account = "default";
  out.deployment = ns + "/" + text(meta, "name");
  out.daemon_ns = ns;
  out.lease = {flags.text("leader-elect-resource-namespace"),
               flags.text("leader-elect-resource-name")};
  out.image = text(container, "image");
  out.helper_image = flags.text("helper-image");
  out.agents = {.on = flags.boolean("agents"),
                .service = flags.text("agents-service"),
                .service_account = flags.text("agents-service-account"),
                .port = flags.integer("agents-port", 0, 65535),
                .pod_labels = member(member(member(spec, "template"), "metadata"), "labels"),
                .pod_ports = member(container, "ports")};
  out.replicas = number(spec, "replicas", 1);
  out.ready = number(member(deployment, "status"), "readyReplicas", 0);
  return out;
}

/// As K3s and kind bring it along, from whatever registry.
bool is_other_program(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const auto slash = image.rfind('/');
  if (slash == std::string_view::npos) return false;
  image = image.substr(0, image.find(':', slash));
  return std::any_of(kOtherPrograms.begin(), kOtherPrograms.end(), [&](std::string_view one) {
    return image == one || (image.ends_with(one) && image[image.size() - one.size() - 1] == '/');
  });
}

std::string named(const Installation& one) {
  return fmt::format("{} ({})", one.deployment, one.provisioner_name);
}

constexpr std::array kInstallation = {
    Flag{.name = "provisioner-name",
         .placeholder = "NAME",
         .env = "PROVISIONER_NAME",
         .fallback = "rancher.io/local-path",
         .fallback_note = "of the Deployment found in the cluster, else rancher.io/local-path",
         .help = "the provisioner, as its StorageClasses call it",
         .values = flags::Values::kProvisioners},
    Flag{.name = "provisioner-namespace",
         .placeholder = "NAME",
         .fallback = "local-path-storage",
         .fallback_note = "of the Deployment found in the cluster, else local-path-storage",
         .help = "namespace of the daemon, its ConfigMap and the helper pods",
         .values = flags::Values::kNamespaces},
    Flag{.name = "configmap-name",
         .placeholder = "NAME",
         .fallback = "local-path-config",
         .fallback_note = "of the Deployment found in the cluster, else local-path-config",
         .help = "ConfigMap with the configuration"},
};

}  // namespace

std::span<const Flag> installation_flags() { return kInstallation; }

std::array<FlagGroup, 3> cluster_command_flags(std::span<const Flag> own) {
  return {FlagGroup{"Flags", own}, FlagGroup{"Cluster", connection_flags()},
          FlagGroup{"Installation", installation_flags()}};
}

std::vector<Installation> installations(const std::vector<json>& deployments,
                                        const Context& context) {
  std::vector<Installation> out;
  const Command* const start = find_command(context.commands, "start");
  if (start == nullptr) return out;
  for (const json& deployment : deployments) {
    const json& pod = member(member(member(deployment, "spec"), "template"), "spec");
    for (const json& container : member(pod, "containers")) {
      if (auto found = installation(deployment, container, *start)) {
        out.push_back(*std::move(found));
        break;
      }
    }
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.deployment < b.deployment; });
  return out;
}

std::optional<std::vector<std::string>> program_arguments(const json& container,
                                                          std::string_view command) {
  const auto words = words_of(container);
  const auto it = std::find(words.begin(), words.end(), command);
  if (it == words.end() || !is_our_program(container, words)) return std::nullopt;
  return std::vector<std::string>(it + 1, words.end());
}

std::string daemon_container(const json& pod_spec) {
  for (const json& container : member(pod_spec, "containers")) {
    if (daemon_arguments(container)) return text(container, "name");
  }
  return {};
}

Installation choose_installation(const std::vector<Installation>& found, const FlagReader& flags) {
  const auto fits = [&](const Installation& one) {
    return (!flags.given("provisioner-name") || one.names().has(flags.text("provisioner-name"))) &&
           (!flags.given("provisioner-namespace") || one.ns == flags.text("provisioner-namespace"));
  };
  const auto order = [](const Installation& one) {
    return std::pair(is_other_program(one.image), one.replicas == 0);
  };
  std::vector<const Installation*> fitting;
  for (const Installation& one : found) {
    if (fits(one)) fitting.push_back(&one);
  }
  const auto first =
      std::min_element(fitting.begin(), fitting.end(),
                       [&](const auto* a, const auto* b) { return order(*a) < order(*b); });
  Installation out = first != fitting.end() ? **first : Installation{};
  for (const Installation* one : fitting) {
    if (one != *first) out.others.push_back(named(*one));
  }
  const auto fill = [&](std::string& value, std::string_view flag) {
    if (value.empty() || flags.given(flag)) value = flags.text(flag);
  };
  if (!out.names().has(flags.text("provisioner-name"))) {
    fill(out.provisioner_name, "provisioner-name");
  }
  fill(out.ns, "provisioner-namespace");
  fill(out.config_map, "configmap-name");
  if (out.daemon_ns.empty()) out.daemon_ns = out.ns;
  if (out.lease.ns.empty()) out.lease.ns = out.ns;
  if (out.lease.name.empty()) out.lease.name = provisioner::lease_name(out.provisioner_name);
  if (out.service_account.empty()) out.service_account = "local-path-provisioner-service-account";
  return out;
}

void tell_which(const Installation& chosen, Context& context) {
  if (chosen.others.empty()) return;
  // What a command waits for may stand in the line still.
  context.err(fmt::format(
      "{}note: there are several provisioners, and this is about Deployment {}; "
      "not about {}: --provisioner-name and --provisioner-namespace choose\n",
      context.terminal.progress ? kEraseLine : std::string_view(), one_line(named(chosen)),
      one_line(fmt::format("{}", fmt::join(chosen.others, ", ")))));
}

Installation find_installation(Cluster& cluster, Context& context, const FlagReader& flags) {
  const auto deployments = cluster.list(kDeployments);
  const auto found =
      deployments.ok() ? installations(*deployments, context) : std::vector<Installation>();
  Installation chosen = choose_installation(found, flags);
  tell_which(chosen, context);
  return chosen;
}

}  // namespace lpp::cli
