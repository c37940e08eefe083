// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/check.h"
#include "cli/check_agents.h"
#include "cli/cluster.h"
#include "cli/manifests.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "k8s/json_access.h"

namespace lpp::cli {

namespace check_command {

using k8s::member, k8s::text;

namespace {

using nlohmann::json;

constexpr std::string_view kName = "check";

constexpr std::array kFiles = {
    Flag{.name = "manifest",
         .short_name = 'f',
         .placeholder = "FILE",
         .help = "objects as they are applied: StorageClasses, ConfigMap, Namespace, Deployment, "
                 "nodes, what belongs to agents; - is standard input; may be given several times"},
    Flag{.name = "config", .placeholder = "FILE", .help = "a config.json"},
    Flag{.name = "helper-pod-file", .placeholder = "FILE", .help = "a helperPod.yaml"},
    Flag{.name = "allow-unsafe-helper-pod-template",
         .env = "ALLOW_UNSAFE_HELPER_POD_TEMPLATE",
         .fallback = "false",
         .help = "check the template of the helper pods as the daemon does with this flag"},
};
constexpr std::array kFlags = {
    Flag{.name = "strict", .fallback = "false", .help = "a warning counts as a problem"},
    kMachineOutputFlag,
};

std::span<const FlagGroup> groups() {
  static const std::array all = {FlagGroup{"Flags", kFlags}, FlagGroup{"Files", kFiles},
                                 FlagGroup{"Cluster", connection_flags()},
                                 FlagGroup{"Installation", installation_flags()}};
  return all;
}

/// A ConfigMap that is meant for us: by its name, or because it holds both texts.
bool is_our_config_map(const json& object, const Installation& installation) {
  if (text(object, "kind") != "ConfigMap") return false;
  const json& data = member(object, "data");
  return text(member(object, "metadata"), "name") == installation.config_map ||
         (member(data, "config.json").is_string() && member(data, "helperPod.yaml").is_string());
}

/// A message that begins with the place, which is told apart from it.
std::string without(const std::string& place, const std::string& message) {
  const std::string prefix = place + ": ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

/// The objects of all manifests; what cannot be read is a finding.
std::vector<ManifestObject> read_manifests(Context& context, const FlagReader& flags,
                                           Findings& findings) {
  std::vector<ManifestObject> all;
  for (const std::string& file : flags.texts("manifest")) {
    const auto text_of_file = context.read_file(file);
    if (!text_of_file.ok()) {
      findings.problem(file, without(file, text_of_file.error().message));
      continue;
    }
    auto objects = read_manifest(*text_of_file, file);
    if (!objects.ok()) {
      findings.problem(file, without(file, objects.error().message));
      continue;
    }
    if (objects->empty()) findings.warning(file, "holds no object");
    for (ManifestObject& one : *objects) {
      for (const std::string& warning : one.warnings) findings.warning(one.place, warning);
      all.push_back(std::move(one));
    }
  }
  return all;
}

/// A file that must be there.
std::optional<std::string> read(Context& context, const std::string& file, Findings& findings) {
  auto text_of_file = context.read_file(file);
  if (text_of_file.ok()) return *std::move(text_of_file);
  findings.problem(file, without(file, text_of_file.error().message));
  return std::nullopt;
}

FileChecks check_files(Context& context, const FlagReader& flags, bool allow_unsafe,
                       Findings& findings) {
  FileChecks out;
  if (flags.given("config")) {
    const std::string file = flags.text("config");
    out.has_config = true;
    findings.checked.push_back(file);
    if (const auto content = read(context, file, findings)) {
      out.config = check_config(file, *content, findings);
    }
  }
  if (flags.given("helper-pod-file")) {
    const std::string file = flags.text("helper-pod-file");
    findings.checked.push_back(file);
    if (const auto content = read(context, file, findings)) {
      check_template(file, *content, allow_unsafe, findings);
    }
  }

  const auto objects = read_manifests(context, flags, findings);
  std::vector<json> deployments;
  for (const auto& one : objects) {
    if (text(one.object, "kind") == "Deployment") deployments.push_back(one.object);
  }
  Installation installation = choose_installation(installations(deployments, context), flags);
  tell_which(installation, context);
  allow_unsafe = allow_unsafe || installation.allow_unsafe_template;
  const auto place_of = [](const ManifestObject& one) {
    return one.place + ": " + kind_and_name(one.object);
  };
  for (const auto& one : objects) {
    if (!is_our_config_map(one.object, installation)) continue;
    std::optional<config::Config> config;
    check_config_map(one.object, place_of(one), allow_unsafe, config, findings);
    const bool own = !flags.given("config");
    if (own) {
      out.has_config = true;
      out.config = std::move(config);
    }
    if (out.config) {
      check_helper_image(installation, one.object, *out.config,
                         own ? place_of(one) + " config.json" : flags.text("config"), findings);
    }
  }
  if (flags.given("provisioner-name") && !objects.empty() &&
      std::none_of(objects.begin(), objects.end(), [&](const ManifestObject& one) {
        return installation.names().has(text(one.object, "provisioner"));
      })) {
    findings.warning("--provisioner-name",
                     fmt::format("no StorageClass in the files names {}",
                                 log::quoted(installation.provisioner_name)),
                     "correct the name, or add the StorageClass");
  }
  std::set<std::string> nodes;
  std::vector<std::string> classes;
  std::vector<std::string> limited;
  for (const auto& one : objects) {
    const std::string kind = text(one.object, "kind");
    const std::string name = text(member(one.object, "metadata"), "name");
    if (kind == "Namespace" && name == installation.ns) {
      findings.checked.push_back(kind_and_name(one.object));
      check_namespace(one.object, place_of(one), findings);
    } else if (kind == "StorageClass" &&
               installation.names().has(text(one.object, "provisioner"))) {
      findings.checked.push_back(kind_and_name(one.object));
      classes.push_back(name);
      check_class(one.object, place_of(one), out.config ? &*out.config : nullptr, findings,
                  installation.agents.on);
      if (has_limits(one.object)) limited.push_back(name);
    } else if (kind == "Node") {
      nodes.insert(name);
    }
  }
  if (installation.agents.on) {
    check_agents(installation, agents_in(objects, installation),
                 out.config ? &*out.config : nullptr, limited, findings);
  }
  if (!nodes.empty() && out.config) {
    check_nodes(*out.config, nodes, classes, "config.json", findings);
  }
  if (out.config) {
    for (const auto& [name, paths] : out.config->classes) {
      if (classes.empty() || std::find(classes.begin(), classes.end(), name) != classes.end()) {
        continue;
      }
      findings.warning(fmt::format("config.json: storageClassConfigs[\"{}\"]", name),
                       "there is no StorageClass of that name in the files");
    }
  }
  return out;
}

std::size_t count(const Findings& findings, bool problems) {
  return static_cast<std::size_t>(
      std::count_if(findings.all.begin(), findings.all.end(),
                    [&](const Finding& finding) { return finding.problem == problems; }));
}

std::string to_text(const Findings& findings, const Terminal& terminal) {
  std::string out;
  for (const bool problems : {true, false}) {
    for (const Finding& finding : findings.all) {
      if (finding.problem != problems) continue;
      std::vector<std::pair<std::string, Cell>> lines{
          {problems ? "PROBLEM" : "WARNING",
           {one_line(finding.place), problems ? Colour::kRed : Colour::kYellow}},
          {"", {one_line(finding.message)}}};
      if (!finding.fix.empty()) lines.push_back({"", {"fix: " + one_line(finding.fix)}});
      out += details(terminal, lines) + "\n";
    }
  }
  std::string checked;
  for (const std::string& one : findings.checked) checked += (checked.empty() ? "" : ", ") + one;
  const std::size_t problems = count(findings, true);
  const std::size_t warnings = count(findings, false);
  out += details(terminal, {{"Checked", {checked.empty() ? "nothing" : checked}},
                            {"Result",
                             {problems + warnings == 0 ? "ok"
                                                       : counted(problems, "problem") + ", " +
                                                             counted(warnings, "warning"),
                              problems > 0   ? Colour::kRed
                              : warnings > 0 ? Colour::kYellow
                                             : Colour::kGreen}}});
  return out;
}

json to_json(const Findings& findings, bool ok) {
  json out{{"ok", ok},
           {"problems", count(findings, true)},
           {"warnings", count(findings, false)},
           {"checked", findings.checked},
           {"findings", json::array()}};
  for (const Finding& finding : findings.all) {
    json one{{"severity", finding.problem ? "problem" : "warning"},
             {"place", finding.place},
             {"message", finding.message}};
    if (!finding.fix.empty()) one["fix"] = finding.fix;
    out["findings"].push_back(std::move(one));
  }
  return out;
}

int run_check(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  const std::string format = flags.choice("output");
  const bool strict = flags.boolean("strict");
  const bool allow_unsafe = flags.boolean("allow-unsafe-helper-pod-template");
  check_connection_flags(flags);
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);
  if (!given.words.empty()) {
    return fail(context, kName,
                invalid(fmt::format("{} is not used; files are given by -f, --config and "
                                    "--helper-pod-file",
                                    log::quoted(given.words.front()))),
                kExitUsage);
  }
  Findings findings;
  const bool files =
      flags.given("manifest") || flags.given("config") || flags.given("helper-pod-file");
  FileChecks checked;
  if (files) checked = check_files(context, flags, allow_unsafe, findings);
  if (!files || asks_for_cluster(flags)) {
    const auto cluster = Cluster::open(context, flags);
    if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitUnreachable);
    Progress progress(context, "checking the cluster");
    if (const auto reached = (*cluster)->version(); !reached.ok()) {
      return fail(context, kName, reached.error(), kExitUnreachable);
    }
    check_cluster(**cluster, context, flags, checked, findings);
  }
  if (findings.checked.empty() && findings.all.empty()) {
    findings.warning("files", "hold nothing of this provisioner: nothing was checked",
                     "give the StorageClass, the ConfigMap or the Deployment; or name the "
                     "provisioner: --provisioner-name");
  }
  const bool ok = count(findings, true) == 0 && (!strict || findings.all.empty());
  context.out(format.empty() ? to_text(findings, context.terminal)
                             : machine_text(to_json(findings, ok), format));
  return ok ? kExitOk : kExitProblem;
}

}  // namespace
}  // namespace check_command

const Command kCheckCommand{
    .name = "check",
    .summary = "check configuration, StorageClasses and cluster for what cannot work",
    .text =
        "Check what the daemon would use, without changing anything: config.json, helperPod.yaml,\n"
        "StorageClasses, Pod Security labels and what agents need from files; and of a cluster\n"
        "besides that the permissions of the daemon, its Deployment, nodes without a path and\n"
        "volumes that are stuck.\n"
        "Without files the cluster is checked; with files only these, unless --kubeconfig,\n"
        "--context or another flag says how to reach a cluster. Exit code: 0 no problems,\n"
        "1 problems, 2 wrong usage, 3 the cluster cannot be reached.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner check                             # the cluster\n"
        "  local-path-provisioner check -f deploy/local-path-storage.yaml\n"
        "  kubectl kustomize . | local-path-provisioner check --strict -f -\n"
        "  local-path-provisioner check --config config.json --helper-pod-file helperPod.yaml\n",
    .flags = check_command::groups(),
    .run = check_command::run_check,
};

}  // namespace lpp::cli
