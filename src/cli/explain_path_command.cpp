// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/explain_path.h"
#include "cli/manifests.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "config/config_parser.h"
#include "k8s/json_access.h"
#include "provisioner/plan.h"

namespace lpp::cli {

namespace explain_path_command {

using k8s::member, k8s::text;

namespace {

constexpr std::string_view kName = "explain-path";

constexpr std::array kFlags = {
    Flag{.name = "node",
         .placeholder = "NAME",
         .fallback_note = "the selected node; every node while none is selected",
         .help = "the node that the scheduler is assumed to choose",
         .values = flags::Values::kNodes},
    Flag{.name = "namespace",
         .short_name = 'n',
         .placeholder = "NAME",
         .fallback_note = "of the kubeconfig's context",
         .help = "namespace of a claim that is named without one",
         .values = flags::Values::kNamespaces},
    kMachineOutputFlag,
};
constexpr std::array kFiles = {
    Flag{.name = "manifest",
         .short_name = 'f',
         .placeholder = "FILE",
         .help =
             "objects to use instead of a cluster: claim, class, ConfigMap, nodes; - is standard "
             "input; may be given several times"},
    Flag{.name = "config",
         .placeholder = "FILE",
         .fallback_note = "config.json of the ConfigMap",
         .help = "the configuration"},
};

std::span<const FlagGroup> groups() {
  static const std::array all = {
      FlagGroup{"Flags", kFlags}, FlagGroup{"From files, without a cluster", kFiles},
      FlagGroup{"Cluster", connection_flags()}, FlagGroup{"Installation", installation_flags()}};
  return all;
}

/// Text of a ConfigMap's key if the object is one that holds it.
std::string config_in(const nlohmann::json& object) {
  if (text(object, "kind") != "ConfigMap") return {};
  return text(member(object, "data"), "config.json");
}

Result<void> set_config(std::string_view text, const std::string& name, ClusterView& view) {
  LPP_ASSIGN_OR_RETURN(auto parsed, config::parse_config(text, name), "configuration");
  view.config = std::move(parsed.config);
  return {};
}

Result<void> load_files(Context& context, const FlagReader& flags, ClusterView& view) {
  view.names = flags.text("provisioner-name");
  for (const std::string& file : flags.texts("manifest")) {
    LPP_ASSIGN_OR_RETURN(const auto text_of_file, context.read_file(file), "read the manifest");
    LPP_ASSIGN_OR_RETURN(auto objects, read_manifest(text_of_file, file), "manifest");
    for (ManifestObject& one : objects) {
      const std::string config = config_in(one.object);
      if (!config.empty() && !flags.given("config")) {
        LPP_RETURN_IF_ERROR(set_config(config, one.place + " config.json", view), "manifest");
      }
      auto& meta = one.object["metadata"];
      if (text(one.object, "kind") == "PersistentVolumeClaim") {
        const auto fill = [&](const char* name, std::string value) {
          if (text(meta, name).empty()) meta[name] = std::move(value);
        };
        fill("namespace", flags.given("namespace") ? flags.text("namespace") : "default");
        fill("uid", std::string(kUnknownUid));
      }
      add_object(one.object, view);
    }
  }
  return {};
}

/// The claim's name as a key; nullopt when it is not one.
std::optional<k8s::ObjectKey> claim_key(const std::string& word, const std::string& ns) {
  if (auto name = name_of_kind(word, "persistentvolumeclaim")) {
    return k8s::ObjectKey{ns, *std::move(name)};
  }
  const auto parts = split(word, '/');
  if (parts.size() > 2 || parts.back().empty() || parts.front().empty()) return std::nullopt;
  if (parts.size() == 2) return k8s::ObjectKey{std::string(parts[0]), std::string(parts[1])};
  return k8s::ObjectKey{ns, word};
}

struct Question {
  k8s::PersistentVolumeClaim claim{};
  std::shared_ptr<const k8s::StorageClass> storage_class{};
  std::vector<std::shared_ptr<const k8s::Node>> nodes{};  // one nullptr = no node is needed
  std::string chosen_by{};                                // how the node was chosen
};

Result<Question> question_of(const k8s::ObjectKey& key, const std::string& wanted_node,
                             const ClusterView& view) {
  Question out;
  const auto claim = view.claims.get(key);
  if (claim == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no claim {}", key.to_string())};
  }
  out.claim = *claim;
  out.storage_class = view.classes.get({"", claim->class_name()});
  if (out.storage_class == nullptr) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("StorageClass \"{}\" of the claim does not exist", claim->class_name())};
  }
  if (!view.names.has(out.storage_class->provisioner)) {
    return invalid(fmt::format("StorageClass {} belongs to provisioner {}, not to {}",
                               out.storage_class->meta.name, out.storage_class->provisioner,
                               to_string(view.names)));
  }
  if (!view.config) return invalid("the configuration is not known");
  const auto* const paths = view.config->paths_for_class(claim->class_name());
  const std::string selected = provisioner::selected_node(*claim);
  const std::string& name = wanted_node.empty() ? selected : wanted_node;
  if (paths != nullptr && paths->shared()) {
    out.nodes.push_back(nullptr);
  } else if (!name.empty()) {
    auto node = view.nodes.get({"", name});
    if (node == nullptr && view.nodes_known) {
      return Error{ErrorCode::kNotFound, fmt::format("there is no node {}", name)};
    }
    if (node == nullptr) {  // without a list of nodes: one without labels
      k8s::Node made;
      made.meta.name = name;
      node = std::make_shared<const k8s::Node>(std::move(made));
    }
    out.nodes.push_back(std::move(node));
    out.chosen_by = wanted_node.empty() ? "selected by the scheduler" : "by --node";
  } else {
    out.nodes = view.nodes.list();
    std::sort(out.nodes.begin(), out.nodes.end(),
              [](const auto& a, const auto& b) { return a->meta.name < b->meta.name; });
    if (out.nodes.empty()) {
      return invalid("no node is selected yet: name one with --node");
    }
  }
  return out;
}

nlohmann::json to_json(const Question& question, const std::vector<PathAnswer>& answers,
                       const k8s::PersistentVolume* made) {
  nlohmann::json out{{"claim", question.claim.meta.key().to_string()},
                     {"storageClass", question.storage_class->meta.name},
                     {"answers", nlohmann::json::array()}};
  if (made != nullptr) out["madeAt"] = made->path;
  for (const PathAnswer& answer : answers) {
    nlohmann::json one{{"possible", answer.refusal.empty()}, {"steps", nlohmann::json::array()}};
    if (!answer.node.empty()) one["node"] = answer.node;
    if (!answer.path.empty()) one["path"] = answer.path;
    if (!answer.refusal.empty()) one["reason"] = answer.refusal;
    for (const PathStep& step : answer.steps) {
      one["steps"].push_back({{"name", step.name}, {"value", step.value}});
    }
    out["answers"].push_back(std::move(one));
  }
  return out;
}

std::string to_text(const Question& question, const std::vector<PathAnswer>& answers,
                    const k8s::PersistentVolume* made, const Terminal& terminal) {
  const auto& claim = question.claim;
  std::vector<std::pair<std::string, Cell>> lines{
      {"claim", {fmt::format("{} ({})", claim.meta.key().to_string(), claim.storage_request)}},
      {"class", {question.storage_class->meta.name}}};
  if (made != nullptr) {
    lines.push_back({"made",
                     {fmt::format("already, at {} (volume {}); made today it would be:", made->path,
                                  made->meta.name)}});
  }
  if (answers.size() > 1) {
    lines.push_back({"node", {"none is selected yet"}});
    std::vector<std::vector<Cell>> rows;
    for (const PathAnswer& answer : answers) {
      const bool refused = !answer.refusal.empty();
      rows.push_back({{answer.node},
                      {refused ? "none: " + one_line(answer.refusal) : answer.path,
                       refused ? Colour::kRed : Colour::kNone}});
    }
    return details(terminal, lines) + "\n" +
           table(terminal, {"NODE", "PATH"}, rows, {.whole = true});
  }
  const PathAnswer& answer = answers.front();
  if (!answer.node.empty()) {
    lines.push_back({"node", {fmt::format("{} ({})", answer.node, question.chosen_by)}});
  }
  for (const PathStep& step : answer.steps) lines.push_back({step.name, {one_line(step.value)}});
  if (answer.refusal.empty()) {
    lines.push_back({"path", {answer.path, Colour::kGreen}});
  } else {
    lines.push_back({"refused", {one_line(answer.refusal), Colour::kRed}});
  }
  return details(terminal, lines);
}

int run_explain_path(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  const std::string format = flags.choice("output");
  check_connection_flags(flags);
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);
  if (given.words.size() != 1) {
    return fail(context, kName, invalid("name one claim: NAMESPACE/CLAIM"), kExitUsage);
  }
  ClusterView view;
  std::string ns = flags.given("namespace") ? flags.text("namespace") : std::string();
  if (flags.given("manifest")) {
    if (auto loaded = load_files(context, flags, view); !loaded.ok()) {
      return fail(context, kName, loaded.error(), kExitProblem);
    }
  } else {
    const auto cluster = Cluster::open(context, flags);
    if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitProblem);
    if (ns.empty()) ns = (*cluster)->default_namespace();
    Progress progress(context, "reading the cluster");
    const Installation installation = find_installation(**cluster, context, flags);
    const auto asked = claim_key(given.words.front(), ns.empty() ? "default" : ns);
    if (!asked) return fail(context, kName, invalid("a claim is NAMESPACE/CLAIM"), kExitUsage);
    const LoadOptions options{.ns = asked->ns,
                              .helper_pods = false,
                              .events = false,
                              .waiting_pods = false,
                              .config = !flags.given("config")};
    if (auto loaded = load(**cluster, installation, options, view); !loaded.ok()) {
      return fail(context, kName, loaded.error(), kExitProblem);
    }
  }
  if (flags.given("config")) {
    const std::string file = flags.text("config");
    auto text_of_file = context.read_file(file);
    auto set = text_of_file.ok() ? set_config(*text_of_file, file, view)
                                 : Result<void>(text_of_file.error());
    if (!set.ok()) return fail(context, kName, set.error(), kExitProblem);
  }
  for (const std::string& note : view.notes) context.err("note: " + one_line(note) + "\n");

  const auto key = claim_key(given.words.front(), ns.empty() ? "default" : ns);
  if (!key) return fail(context, kName, invalid("a claim is NAMESPACE/CLAIM"), kExitUsage);
  auto question = question_of(*key, flags.text("node"), view);
  if (!question.ok()) return fail(context, kName, question.error(), kExitProblem);
  const std::string volume_name = question->claim.volume_name.empty()
                                      ? provisioner::volume_name_of(question->claim.meta.uid)
                                      : question->claim.volume_name;
  const auto made = view.volumes.get({"", volume_name});
  std::vector<PathAnswer> answers;
  for (const auto& node : question->nodes) {
    answers.push_back(explain_path(question->claim, *question->storage_class, node.get(),
                                   *view.config, view.directories, view.nodes));
  }
  context.out(format.empty() ? to_text(*question, answers, made.get(), context.terminal)
                             : machine_text(to_json(*question, answers, made.get()), format));
  return std::any_of(answers.begin(), answers.end(),
                     [](const PathAnswer& answer) { return answer.refusal.empty(); })
             ? kExitOk
             : kExitProblem;
}

}  // namespace
}  // namespace explain_path_command

const Command kExplainPathCommand{
    .name = "explain-path",
    .summary = "show which path a claim gets, and why",
    .arguments = "[NAMESPACE/]CLAIM",
    .text =
        "Show which directory a claim gets, and why: its class, the node, the entry of the\n"
        "configuration, the patterns. Nothing is changed. The exit code is 1 when it gets none.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner explain-path web/data\n"
        "  local-path-provisioner explain-path web/data --node worker-2\n"
        "  local-path-provisioner explain-path web/data --node worker-2 -f claim.yaml -f "
        "class.yaml \\\n"
        "    --config config.json\n",
    .flags = explain_path_command::groups(),
    .run = explain_path_command::run_explain_path,
    .values = flags::Values::kClaims,
};

}  // namespace lpp::cli
