#include "app/options.h"

#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "app/flag_table.h"
#include "app/flag_values.h"
#include "app/version.h"
#include "base/log.h"
#include "base/result.h"
#include "base/strings.h"

namespace lpp::app {

namespace {

constexpr std::string_view kStart = "start";
constexpr std::string_view kHelp = "help";

/// The groups of a command with the global flags in front.
std::vector<FlagGroup> with_global_flags(std::span<const FlagGroup> groups) {
  std::vector<FlagGroup> all{global_flags()};
  all.insert(all.end(), groups.begin(), groups.end());
  return all;
}

PrintAndExit print(std::string text) { return {.text = std::move(text), .exit_code = 0}; }

PrintAndExit usage_error(std::string_view message, std::string_view help_command,
                         std::string_view usage) {
  return {.text = fmt::format("local-path-provisioner: {}\n\nUsage:\n  {}\n\n"
                              "Run `{}` for the flags and their meaning.\n",
                              message, usage, help_command),
          .exit_code = 2};
}

PrintAndExit program_error(std::string_view message) {
  return usage_error(message, "local-path-provisioner --help",
                     "local-path-provisioner [global flags] start [flags]");
}

PrintAndExit start_error(std::string_view message) {
  return usage_error(message, "local-path-provisioner start --help",
                     "local-path-provisioner start [flags]");
}

// ---- the command line: flags as given --------------------------------------------------------

/// What the command line said, by long name.
using GivenFlags = std::map<std::string_view, std::string>;

struct Given {
  GivenFlags flags{};
  std::vector<std::string> surplus{};
};

/// Name of a flag argument without dashes and value; nullopt for anything else.
std::optional<std::string_view> flag_name(std::string_view argument) {
  if (argument.size() < 2 || argument.front() != '-' || argument == "--") return std::nullopt;
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  return argument.substr(0, argument.find('='));
}

Error unknown_flag(std::string_view argument, std::string_view name,
                   std::span<const FlagGroup> groups) {
  std::vector<std::string_view> names;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) names.push_back(flag.name);
  }
  const std::string_view guess = nearest(name, names);
  return invalid(fmt::format("unknown flag {}{}", argument.substr(0, argument.find('=')),
                             guess.empty() ? "" : fmt::format("; did you mean --{}?", guess)));
}

/// The flags of the groups and what else there is, in any order; "--" ends the flags. Written out,
/// because a parser that matches values by regular expression does not survive a --config of JSON
/// text with line breaks, or a long one.
Result<Given> parse_flags(std::span<const std::string> arguments,
                          std::span<const FlagGroup> groups) {
  Given given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      const auto rest = arguments.subspan(i + 1);
      given.surplus.insert(given.surplus.end(), rest.begin(), rest.end());
      break;
    }
    const auto name = flag_name(argument);
    if (!name) {
      given.surplus.push_back(argument);
      continue;
    }
    const Flag* const flag = find_flag(groups, *name);
    if (flag == nullptr) return unknown_flag(argument, *name, groups);

    std::string& value = given.flags[flag->name];  // the last one wins
    if (const auto equals = argument.find('='); equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (flag->is_boolean()) {
      value = "true";
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return invalid(
          fmt::format("--{} needs a value: --{} {}", flag->name, flag->name, flag->placeholder));
    }
  }
  return given;
}

// ---- values: flag, variable or default, checked ----------------------------------------------

/// Reads values of one command. The first error is kept; what is returned after one is of no use.
class Values {
 public:
  Values(const Given& given, const GetEnv& getenv, std::span<const FlagGroup> groups)
      : given_(given.flags), getenv_(getenv), groups_(groups) {}

  const std::optional<Error>& error() const { return error_; }

  /// True when the flag or its variable is there; an empty variable counts as absent.
  bool given(std::string_view name) const {
    const Source source = look_up(name);
    return source.origin != Origin::kDefault && !is_empty_variable(source);
  }

  std::string text(std::string_view name) const { return look_up(name).value; }

  /// A text that must match; an empty variable overrides the default (and rarely matches).
  std::string checked_text(std::string_view name, bool (*accept)(std::string_view),
                           std::string_view expected) {
    const Source source = look_up(name);
    if (!accept(source.value)) fail(source, expected);
    return source.value;
  }

  bool boolean(std::string_view name) {
    return number<bool>(name, parse_go_bool, "true or false").value_or(false);
  }

  int integer(std::string_view name, int low, int high) {
    const auto expected = high == std::numeric_limits<int>::max()
                              ? fmt::format("a whole number from {}", low)
                              : fmt::format("a whole number from {} to {}", low, high);
    const auto value = number<std::int64_t>(name, parse_go_int, expected);
    if (!value) return low;
    if (*value < low || *value > high) fail(usable_source(name), expected);
    return static_cast<int>(*value);
  }

  double real(std::string_view name) {
    return number<double>(name, parse_go_float, "a number").value_or(0);
  }

  std::chrono::seconds seconds(std::string_view name) {
    constexpr std::string_view kExpected = "a duration of whole seconds from 1s to 24h, like 15s";
    const auto value = number<std::chrono::nanoseconds>(name, parse_go_duration, kExpected);
    if (!value) return std::chrono::seconds(1);
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*value);
    if (whole != *value || whole < std::chrono::seconds(1) || whole > std::chrono::hours(24)) {
      fail(usable_source(name), kExpected);
    }
    return whole;
  }

  void fail(std::string message) {
    if (!error_) error_ = invalid(std::move(message));
  }

 private:
  enum class Origin { kFlag, kVariable, kDefault };
  struct Source {
    const Flag* flag = nullptr;
    Origin origin = Origin::kDefault;
    std::string value{};
  };

  Source look_up(std::string_view name) const {
    const Flag* const flag = find_flag(groups_, name);
    if (const auto it = given_.find(name); it != given_.end()) {
      return {flag, Origin::kFlag, it->second};
    }
    if (!flag->env.empty()) {
      if (auto value = getenv_(std::string(flag->env))) {
        return {flag, Origin::kVariable, *std::move(value)};
      }
    }
    return {flag, Origin::kDefault, std::string(flag->fallback)};
  }

  static bool is_empty_variable(const Source& source) {
    return source.origin == Origin::kVariable && source.value.empty();
  }

  /// For values that are not text: an empty variable is ignored.
  Source usable_source(std::string_view name) const {
    Source source = look_up(name);
    if (is_empty_variable(source)) source.value = source.flag->fallback;
    return source;
  }

  template <typename T>
  std::optional<T> number(std::string_view name, std::optional<T> (*parse)(std::string_view),
                          std::string_view expected) {
    const Source source = usable_source(name);
    auto value = parse(source.value);
    if (!value) fail(source, expected);
    return value;
  }

  void fail(const Source& source, std::string_view expected) {
    const bool variable = source.origin == Origin::kVariable;
    fail(fmt::format("{}{}={}: expected {}", variable ? "$" : "--",
                     variable ? source.flag->env : source.flag->name,
                     log::quoted(truncate_utf8(source.value, 200)), expected));
  }

  const GivenFlags& given_;
  const GetEnv& getenv_;
  const std::span<const FlagGroup> groups_;
  std::optional<Error> error_{};
};

bool is_image_name(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n") == std::string_view::npos;
}

/// A provisioner's name as a lease may be called: "rancher.io/local-path" ->
/// "rancher.io-local-path".
std::string lease_name_of(std::string_view provisioner_name) {
  std::string name = to_lower(provisioner_name);
  for (char& c : name) {
    if (c == '/' || c == '_') c = '-';
  }
  return name;
}

constexpr std::string_view kLabelRule =
    "a name of 1 to 63 lower-case letters, digits and '-', without '-' at its ends";
constexpr std::string_view kSubdomainRule =
    "a name of 1 to 253 lower-case letters, digits, '-' and '.', with a letter or digit at its "
    "ends";

LeaderElection read_leader_election(Values& values, const Options& options) {
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
  out.resource_name =
      values.given("leader-elect-resource-name")
          ? values.checked_text("leader-elect-resource-name", is_dns_subdomain, kSubdomainRule)
          : lease_name_of(options.provisioner_name);
  out.resource_namespace =
      values.given("leader-elect-resource-namespace")
          ? values.checked_text("leader-elect-resource-namespace", is_dns_label, kLabelRule)
          : options.namespace_name;
  return out;
}

std::optional<ClientThrottle> read_client_throttle(Values& values) {
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

Result<Options> read_start_options(const Given& given, const GetEnv& getenv,
                                   std::span<const FlagGroup> groups) {
  constexpr int kMax = std::numeric_limits<int>::max();
  constexpr int kMaxWorkers = 1000;
  Values values(given, getenv, groups);
  Options out;
  out.debug = values.boolean("debug");
  out.config = values.text("config");
  out.provisioner_name = values.checked_text(
      "provisioner-name", is_provisioner_name,
      "a provisioner's name as a StorageClass accepts it, like rancher.io/local-path");
  out.namespace_name = values.checked_text("namespace", is_dns_label, kLabelRule);
  out.helper_image = values.checked_text("helper-image", is_image_name, "the name of an image");
  out.kubeconfig = values.text("kubeconfig");
  out.configmap_name = values.checked_text("configmap-name", is_dns_subdomain, kSubdomainRule);
  out.service_account_name =
      values.checked_text("service-account-name", is_dns_subdomain, kSubdomainRule);
  out.helper_pod_file = values.text("helper-pod-file");
  out.config_mount_path = getenv("CONFIG_MOUNT_PATH").value_or("");
  out.worker_threads = values.integer("worker-threads", 1, kMaxWorkers);
  out.provisioning_retry_count = values.integer("provisioning-retry-count", 0, kMax);
  out.deletion_retry_count = values.integer("deletion-retry-count", 0, kMax);
  out.allow_unsafe_helper_pod_template = values.boolean("allow-unsafe-helper-pod-template");
  out.client_throttle = read_client_throttle(values);
  out.health_port = values.integer("health-port", 0, 65535);
  out.leader_election = read_leader_election(values, out);
  for (const std::string& argument : given.surplus) {
    out.warnings.push_back(
        fmt::format("argument {} is not used", log::quoted(truncate_utf8(argument, 200))));
  }
  if (values.error()) return *values.error();
  return out;
}

// ---- commands --------------------------------------------------------------------------------

bool asked_for(const Given& given, std::string_view name) {
  const auto it = given.flags.find(name);
  return it != given.flags.end() && parse_go_bool(it->second).value_or(true);
}

PrintAndExit print_version() {
  return print(fmt::format("local-path-provisioner version {}\n", version()));
}

Invocation start(Given global, std::span<const std::string> arguments, const GetEnv& getenv) {
  const auto groups = with_global_flags(start_flags());
  auto given = parse_flags(arguments, groups);
  if (!given.ok()) return start_error(given.error().message);
  if (asked_for(*given, "help") || asked_for(global, "help")) return print(start_help());
  if (asked_for(*given, "version") || asked_for(global, "version")) return print_version();

  given->flags.merge(global.flags);  // after the command wins
  auto options = read_start_options(*given, getenv, groups);
  if (!options.ok()) return start_error(options.error().message);
  return *std::move(options);
}

Invocation help(std::span<const std::string> arguments) {
  if (arguments.empty() || flag_name(arguments.front())) return print(program_help());
  if (arguments.front() == kStart) return print(start_help());
  return program_error(fmt::format("there is no command {}", log::quoted(arguments.front())));
}

Invocation unknown_command(std::string_view command) {
  const std::string_view guess = nearest(command, {kStart, kHelp});
  return program_error(fmt::format("there is no command {}{}",
                                   log::quoted(truncate_utf8(command, 200)),
                                   guess.empty() ? "" : fmt::format("; did you mean {}?", guess)));
}

/// The flag before the command that is not a global one may belong to a command.
PrintAndExit misplaced_or_unknown(std::span<const std::string> arguments, const Error& error) {
  for (const std::string& argument : arguments) {
    const std::string_view name = flag_name(argument).value_or("");
    const FlagGroup global_groups[] = {global_flags()};
    if (find_flag(global_groups, name) != nullptr) continue;
    if (const Flag* const flag = find_flag(start_flags(), name)) {
      return program_error(fmt::format(
          "--{} is a flag of start and stands after it: local-path-provisioner start --{}",
          flag->name, flag->name));
    }
    break;
  }
  return program_error(error.message);
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments, const GetEnv& getenv) {
  // Only boolean flags may stand before the command, so that the first other word is the command.
  const std::span<const std::string> all(arguments);
  std::size_t command = 0;
  while (command < all.size() && flag_name(all[command])) ++command;

  const FlagGroup global_groups[] = {global_flags()};
  auto global = parse_flags(all.first(command), global_groups);
  if (!global.ok()) return misplaced_or_unknown(all.first(command), global.error());
  if (command == all.size()) {
    if (asked_for(*global, "version")) return print_version();
    if (asked_for(*global, "help")) return print(program_help());
    return program_error("there is no command; the one to run is `start`");
  }
  const auto rest = all.subspan(command + 1);
  if (all[command] == kStart) return start(*std::move(global), rest, getenv);
  if (all[command] == kHelp) return help(rest);
  return unknown_command(all[command]);
}

Invocation parse_command_line(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.emplace_back(argv[i]);
  return parse_command_line(arguments, [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): at start
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

}  // namespace lpp::app
