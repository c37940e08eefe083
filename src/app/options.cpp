// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "app/flag_table.h"
#include "app/version.h"
#include "base/listener.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/result.h"
#include "base/strings.h"
#include "cli/version_command.h"
#include "flags/flag_reader.h"
#include "flags/flag_values.h"
#include "flags/spelling.h"
#include "helperpod/manifest.h"
#include "k8s/server_url.h"
#include "provisioner/names.h"
#include "text/dns_names.h"
#include "text/edit_distance.h"

namespace lpp::app {

namespace {

using cli::Command;
using cli::Flag;
using cli::FlagGroup;
using cli::Given;
using flags::flag_name;
using flags::FlagReader;

constexpr std::string_view kHelp = "help";

PrintAndExit print(std::string text) { return {.text = std::move(text), .exit_code = 0}; }

/// The program as its user calls it.
using Program = std::string_view;

PrintAndExit usage_error(Program program, std::string_view message, std::string_view help_command,
                         std::string_view usage) {
  return {.text = fmt::format("{}: {}\n\nUsage:\n  {}\n\n"
                              "Run `{}` for the flags and their meaning.\n",
                              program, message, usage, help_command),
          .exit_code = cli::kExitUsage};
}

PrintAndExit program_error(Program program, std::string_view message) {
  return usage_error(program, message, fmt::format("{} --help", program),
                     fmt::format("{} [global flags] COMMAND [flags]", program));
}

PrintAndExit command_error(Program program, const Command& command, std::string_view message) {
  return usage_error(program, message, fmt::format("{} {} --help", program, command.name),
                     usage_line(command, program));
}

bool is_image_name(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n") == std::string_view::npos;
}

constexpr std::string_view kLabelRule =
    "a name of 1 to 63 lower-case letters, digits and '-', without '-' at its ends";
constexpr std::string_view kSubdomainRule =
    "a name of 1 to 253 lower-case letters, digits, '-' and '.', with a letter or digit at its "
    "ends";

LeaderElection read_leader_election(FlagReader& values, const Options& options) {
  LeaderElection out;
  out.enabled = values.boolean("leader-elect");
  out.lease_duration = values.seconds("leader-elect-lease-duration");
  out.renew_deadline = values.seconds("leader-elect-renew-deadline");
  out.retry_period = values.seconds("leader-elect-retry-period");
  if (out.enabled && out.lease_duration <= out.renew_deadline) {
    values.fail("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline");
  }
  if (out.enabled && out.renew_deadline * 5 <= out.retry_period * 6) {
    values.fail(
        "--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period");
  }
  out.resource_name = values.given("leader-elect-resource-name")
                          ? values.checked_text("leader-elect-resource-name",
                                                text::is_dns_subdomain, kSubdomainRule)
                          : provisioner::lease_name(options.provisioner_name);
  out.resource_namespace =
      values.given("leader-elect-resource-namespace")
          ? values.checked_text("leader-elect-resource-namespace", text::is_dns_label, kLabelRule)
          : options.namespace_name;
  return out;
}

std::optional<ClientThrottle> read_client_throttle(FlagReader& values) {
  if (!values.given("kube-client-qps") && !values.given("kube-client-burst")) return std::nullopt;
  ClientThrottle out;
  if (values.given("kube-client-qps")) out.qps = values.real("kube-client-qps");
  if (values.given("kube-client-burst")) {
    out.burst = values.integer("kube-client-burst", std::numeric_limits<int>::min(),
                               std::numeric_limits<int>::max());
  }
  if (out.qps <= 0) return std::nullopt;
  if (out.burst <= 0) {
    values.fail("--kube-client-burst must be at least 1 when --kube-client-qps limits the calls");
  }
  return out;
}

log::Level log_level(std::string_view name) {
  if (name == "debug") return log::Level::kDebug;
  if (name == "warn") return log::Level::kWarn;
  if (name == "error") return log::Level::kError;
  return log::Level::kInfo;
}

/// The scheduler looks for a CSIDriver of the provisioner's name, so that it must be one that an
/// object can have; and it is a label's value of what is published for it.
std::string read_capacity_provisioner_name(FlagReader& values, const Options& options) {
  if (values.text("capacity-provisioner-name").empty()) return {};
  auto name = values.checked_text(
      "capacity-provisioner-name", flags::is_driver_name,
      "a name without a slash, of 1 to 63 lower-case letters, digits, '-' and '.', with a letter "
      "or digit at its ends, like local-path.example.org");
  if (name == options.provisioner_name) {
    values.fail(
        "--capacity-provisioner-name is served besides --provisioner-name and must be another "
        "name");
  }
  return name;
}

Result<Options> read_start_options(const Given& given, const GetEnv& getenv) {
  constexpr int kMax = std::numeric_limits<int>::max();
  constexpr int kMaxWorkers = 1000;
  constexpr int kMaxHelperPods = 10'000;
  const auto groups = all_flags(start_command());
  FlagReader values(given, getenv, groups);
  Options out;
  out.debug = values.boolean("debug");
  out.log_level = out.debug ? log::Level::kDebug : log_level(values.choice("log-level"));
  out.log_format = values.choice("log-format") == "json" ? log::Format::kJson : log::Format::kText;
  out.config = values.text("config");
  out.provisioner_name = values.checked_text(
      "provisioner-name", flags::is_provisioner_name,
      "a provisioner's name as a StorageClass accepts it, like rancher.io/local-path");
  out.capacity_provisioner_name = read_capacity_provisioner_name(values, out);
  out.namespace_name = values.checked_text("namespace", text::is_dns_label, kLabelRule);
  out.helper_image = values.checked_text("helper-image", is_image_name, "the name of an image");
  out.kubeconfig = values.text("kubeconfig");
  out.configmap_name =
      values.checked_text("configmap-name", text::is_dns_subdomain, kSubdomainRule);
  out.service_account_name =
      values.checked_text("service-account-name", text::is_dns_subdomain, kSubdomainRule);
  out.helper_pod_file = values.text("helper-pod-file");
  out.config_mount_path = getenv("CONFIG_MOUNT_PATH").value_or("");
  out.helper_pods_per_node = values.integer("helper-pods-per-node", 0, kMaxHelperPods);
  out.worker_threads = values.integer("worker-threads", 1, kMaxWorkers);
  out.provisioning_retry_count = values.integer("provisioning-retry-count", 0, kMax);
  out.deletion_retry_count = values.integer("deletion-retry-count", 0, kMax);
  out.agents = values.boolean("agents");
  out.agents_port = values.integer("agents-port", 0, 65535);
  out.agents_service = values.checked_text("agents-service", text::is_dns_label, kLabelRule);
  out.agents_service_account =
      values.checked_text("agents-service-account", text::is_dns_subdomain, kSubdomainRule);
  out.bind_claims = values.boolean("bind-claims");
  out.allow_unsafe_helper_pod_template = values.boolean("allow-unsafe-helper-pod-template");
  out.client_throttle = read_client_throttle(values);
  out.health_port = values.integer("health-port", 0, 65535);
  out.metrics = values.boolean("metrics");
  out.statusz = values.boolean("statusz");
  out.leader_election = read_leader_election(values, out);
  for (const std::string& argument : given.words) {
    out.warnings.push_back(
        fmt::format("argument {} is not used", log::quoted(truncate_utf8(argument, 200))));
  }
  if (values.error()) return *values.error();
  return out;
}

Result<AgentOptions> read_agent_options(const Given& given, const GetEnv& getenv) {
  const auto groups = all_flags(agent_command());
  FlagReader values(given, getenv, groups);
  AgentOptions out;
  const log::Level level = log_level(values.choice("log-level"));
  out.log_level = values.boolean("debug") ? log::Level::kDebug : level;
  out.log_format = values.choice("log-format") == "json" ? log::Format::kJson : log::Format::kText;
  const std::string ns = values.checked_text("namespace", text::is_dns_label, kLabelRule);
  const std::string controllers =
      values.given("controller")
          ? values.text("controller")
          : fmt::format("https://local-path-provisioner-agents.{}.svc:8443", ns);
  for (const std::string_view url : split(controllers, ',')) {
    const auto parsed = k8s::parse_url(url);
    if (!parsed.ok() || parsed->scheme != "https" || parsed->host.empty()) {
      values.fail("--controller: expected URLs like https://HOST:PORT, separated by commas");
    }
    out.controllers.emplace_back(url);
  }
  out.ca_file = values.text("ca-file");
  out.token_file = values.text("token-file");
  out.root = tidy_path(values.text("root"));
  if (!out.root.starts_with('/')) values.fail("--root: expected an absolute path");
  out.usage_interval = values.seconds_or_zero("usage-interval");
  out.sweep_after = values.seconds_or_zero("sweep-after");
  out.node_name = values.text("node-name");
  out.health_port = values.integer("health-port", 0, 65535);
  out.health_address = values.text("health-address");
  if (!out.health_address.empty() && !is_address(out.health_address)) {
    values.fail("--health-address: expected an IPv4 or IPv6 address in numbers, such as 127.0.0.1");
  }
  if (!given.words.empty()) {
    values.fail(fmt::format("argument {} is not known",
                            log::quoted(truncate_utf8(given.words.front(), 200))));
  }
  if (values.error()) return *values.error();
  return out;
}

// ---- commands --------------------------------------------------------------------------------

PrintAndExit print_version() {
  return print(fmt::format("local-path-provisioner version {}\n", version()));
}

Invocation run(Program program, const Command& command, std::span<const std::string> arguments,
               const GetEnv& getenv) {
  const auto groups = all_flags(command);
  auto given = parse_flags(arguments, groups);
  if (!given.ok()) return command_error(program, command, given.error().message);
  if (given->asked_for("help")) return print(command_help(command, program));
  if (given->asked_for("version")) return print_version();
  if (command.run != nullptr) {
    FlagReader values(*given, getenv, groups);
    values.boolean("debug");
    if (values.error()) return command_error(program, command, values.error()->message);
    return cli::Call{&command, *std::move(given)};
  }
  if (&command == &agent_command()) {
    auto agent = read_agent_options(*given, getenv);
    if (!agent.ok()) return command_error(program, command, agent.error().message);
    return *std::move(agent);
  }
  auto options = read_start_options(*given, getenv);
  if (!options.ok()) return command_error(program, command, options.error().message);
  return *std::move(options);
}

Invocation help(Program program, std::span<const std::string> arguments) {
  const auto all = all_commands();
  if (arguments.empty() || flag_name(arguments.front())) return print(program_help(all, program));
  if (const Command* const command = find_command(all, arguments.front())) {
    return print(command_help(*command, program));
  }
  return program_error(program,
                       fmt::format("there is no command {}", log::quoted(arguments.front())));
}

Invocation unknown_command(Program program, std::string_view name) {
  std::vector<std::string_view> names{kHelp};
  for (const Command* command : all_commands()) names.push_back(command->name);
  const std::string_view guess = text::nearest(name, names);
  return program_error(
      program, fmt::format("there is no command {}{}", log::quoted(truncate_utf8(name, 200)),
                           guess.empty() ? "" : fmt::format("; did you mean {}?", guess)));
}

/// Whether a flag before the command has its value in the next word: a flag of any command may
/// stand there, and one name means the same to all of them.
bool takes_next_word(std::string_view argument) {
  for (const Command* command : all_commands()) {
    const auto spelling = flags::spell(argument, all_flags(*command));
    if (spelling.known) return spelling.value_follows;
  }
  return false;
}

/// The flag before the command that is not a global one may belong to a command.
PrintAndExit misplaced_or_unknown(Program program, std::span<const std::string> arguments,
                                  const Error& error) {
  for (const std::string& argument : arguments) {
    const std::string_view name = flag_name(argument).value_or("");
    const FlagGroup global_groups[] = {cli::global_flags()};
    if (find_flag(global_groups, name) != nullptr) continue;
    const auto all = all_commands();
    const auto has_it = [&](const Command* one) { return find_flag(one->flags, name) != nullptr; };
    if (std::count_if(all.begin(), all.end(), has_it) > 1) {
      return program_error(
          program, fmt::format("--{0} is a flag of several commands, and there is none: {1} "
                               "COMMAND --{0}",
                               name, program));
    }
    for (const Command* command : all) {
      if (const Flag* const flag = find_flag(command->flags, name)) {
        return program_error(
            program, fmt::format("--{} is a flag of {} and stands after it: {} {} --{}", flag->name,
                                 command->name, program, command->name, flag->name));
      }
    }
    break;
  }
  return program_error(program, error.message);
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments, const GetEnv& getenv,
                              std::string_view program) {
  // The first word that is neither a flag nor the value of one is the command.
  const std::span<const std::string> all(arguments);
  std::size_t command = 0;
  while (command < all.size() && flag_name(all[command])) {
    command += takes_next_word(all[command]) ? 2 : 1;
  }
  command = std::min(command, all.size());
  const Command* const found =
      command < all.size() ? find_command(all_commands(), all[command]) : nullptr;
  if (found != nullptr) {
    // As if all stood after the command: of two values the later one counts.
    std::vector<std::string> flags(arguments.begin(),
                                   arguments.begin() + static_cast<std::ptrdiff_t>(command));
    flags.insert(flags.end(), arguments.begin() + static_cast<std::ptrdiff_t>(command) + 1,
                 arguments.end());
    return run(program, *found, flags, getenv);
  }

  const FlagGroup global_groups[] = {cli::global_flags()};
  auto global = parse_flags(all.first(command), global_groups);
  if (!global.ok()) return misplaced_or_unknown(program, all.first(command), global.error());
  if (command == all.size()) {
    if (global->asked_for("version")) return print_version();
    return print(program_help(all_commands(), program));
  }
  const auto rest = all.subspan(command + 1);
  if (all[command] == kHelp) return help(program, rest);
  return unknown_command(program, all[command]);
}

std::string program_name(std::string_view argv0) {
  // kubectl runs `kubectl local-path` as a program called kubectl-local_path.
  return argv0.substr(argv0.rfind('/') + 1).starts_with("kubectl-local_path")
             ? "kubectl local-path"
             : "local-path-provisioner";
}

Invocation parse_command_line(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  const std::string_view called = argc > 0 ? argv[0] : "";
  // Commands of helper pods are a program and no more.
  const std::string_view name = called.substr(called.rfind('/') + 1);
  if (name == helperpod::kNodeProgram) arguments.emplace_back("node");
  // kubectl asks a program of this name for what completes `kubectl local-path ...`.
  if (name == cli::kCompletionProgram) arguments = {std::string(cli::kCompleteCommand.name), "--"};
  for (int i = 1; i < argc; ++i) arguments.emplace_back(argv[i]);
  return parse_command_line(arguments, process_environment(),
                            program_name(argc > 0 ? argv[0] : ""));
}

GetEnv process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value =
        std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): read only
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

}  // namespace lpp::app
