// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/flag_table.h"
#include "app/version.h"
#include "base/log.h"
#include "options_reading.h"

using namespace lpp::app;
using namespace lpp::app::testing;
using namespace std::chrono_literals;

TEST_CASE("start without flags has the documented defaults") {
  const Options o = options({"start"});
  CHECK_FALSE(o.debug);
  CHECK(o.config.empty());
  CHECK(o.provisioner_name == "rancher.io/local-path");
  CHECK(o.namespace_name == "local-path-storage");
  CHECK(o.helper_image == "rancher/library-busybox:1.32.1");
  CHECK(o.kubeconfig.empty());
  CHECK(o.configmap_name == "local-path-config");
  CHECK(o.service_account_name == "local-path-provisioner-service-account");
  CHECK(o.helper_pod_file.empty());
  CHECK(o.config_mount_path.empty());
  CHECK(o.worker_threads == 16);
  CHECK(o.provisioning_retry_count == 15);
  CHECK(o.deletion_retry_count == 15);
  CHECK_FALSE(o.allow_unsafe_helper_pod_template);
  CHECK_FALSE(o.client_throttle.has_value());
  CHECK(o.health_port == 8080);
  CHECK(o.leader_election == LeaderElection{.enabled = false,
                                            .lease_duration = 15s,
                                            .renew_deadline = 10s,
                                            .retry_period = 2s,
                                            .resource_name = "rancher.io-local-path",
                                            .resource_namespace = "local-path-storage"});
  CHECK(o.warnings.empty());
}

TEST_CASE("each flag sets its option, in each accepted form") {
  struct Case {
    std::string flag;
    std::string value;
    std::function<bool(const Options&)> is_set;
  };
  const Case cases[] = {
      {"config", "/c.json", [](const Options& o) { return o.config == "/c.json"; }},
      {"provisioner-name", "x.io/y",
       [](const Options& o) { return o.provisioner_name == "x.io/y"; }},
      {"capacity-provisioner-name", "x.io",
       [](const Options& o) { return o.served_names().has("x.io"); }},
      {"namespace", "ns1", [](const Options& o) { return o.namespace_name == "ns1"; }},
      {"helper-image", "r/i@sha256:0",
       [](const Options& o) { return o.helper_image == "r/i@sha256:0"; }},
      {"kubeconfig", "/k", [](const Options& o) { return o.kubeconfig == "/k"; }},
      {"configmap-name", "c.m", [](const Options& o) { return o.configmap_name == "c.m"; }},
      {"service-account-name", "sa",
       [](const Options& o) { return o.service_account_name == "sa"; }},
      {"helper-pod-file", "/h", [](const Options& o) { return o.helper_pod_file == "/h"; }},
      {"worker-threads", "4", [](const Options& o) { return o.worker_threads == 4; }},
      {"provisioning-retry-count", "0",
       [](const Options& o) { return o.provisioning_retry_count == 0; }},
      {"deletion-retry-count", "2147483647",
       [](const Options& o) { return o.deletion_retry_count == 2147483647; }},
      {"kube-client-burst", "20",
       [](const Options& o) { return o.client_throttle == ClientThrottle{.qps = 5, .burst = 20}; }},
      {"kube-client-qps", "50",
       [](const Options& o) {
         return o.client_throttle == ClientThrottle{.qps = 50, .burst = 10};
       }},
      {"health-port", "0", [](const Options& o) { return o.health_port == 0; }},
      {"leader-elect-lease-duration", "1m",
       [](const Options& o) { return o.leader_election.lease_duration == 60s; }},
      {"leader-elect-renew-deadline", "9s",
       [](const Options& o) { return o.leader_election.renew_deadline == 9s; }},
      {"leader-elect-retry-period", "1s",
       [](const Options& o) { return o.leader_election.retry_period == 1s; }},
      {"leader-elect-resource-name", "my.lease",
       [](const Options& o) { return o.leader_election.resource_name == "my.lease"; }},
      {"leader-elect-resource-namespace", "other",
       [](const Options& o) { return o.leader_election.resource_namespace == "other"; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.flag);
    CHECK_FALSE(c.is_set(options({"start"})));
    CHECK(c.is_set(options({"start", "--" + c.flag, c.value})));
    CHECK(c.is_set(options({"start", "--" + c.flag + "=" + c.value})));
    CHECK(c.is_set(options({"start", "-" + c.flag, c.value})));
    CHECK(c.is_set(options({"start", "-" + c.flag + "=" + c.value})));
    check_refused({"start", "--" + c.flag}, {}, "--" + c.flag + " needs a value");
  }
}

TEST_CASE("a boolean flag takes a value only after =") {
  struct Case {
    std::string flag;
    std::function<bool(const Options&)> get;
  };
  const Case cases[] = {
      {"debug", [](const Options& o) { return o.debug; }},
      {"d", [](const Options& o) { return o.debug; }},
      {"allow-unsafe-helper-pod-template",
       [](const Options& o) { return o.allow_unsafe_helper_pod_template; }},
      {"leader-elect", [](const Options& o) { return o.leader_election.enabled; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.flag);
    CHECK(c.get(options({"start", "--" + c.flag})));
    CHECK(c.get(options({"start", "-" + c.flag})));
    CHECK(c.get(options({"start", "--" + c.flag + "=1"})));
    CHECK_FALSE(c.get(options({"start", "--" + c.flag + "=false"})));
    const Options spaced = options({"start", "--" + c.flag, "false"});
    CHECK(c.get(spaced));
    CHECK(spaced.warnings.size() == 1);
    check_refused({"start", "--" + c.flag + "=maybe"}, {}, "=maybe: expected true or false");
    check_refused({"start", "--" + c.flag + "="}, {}, "=\"\": expected true or false");
  }
}

TEST_CASE("debug is accepted before and after the command, and from its variable") {
  CHECK(options({"--debug", "start"}).debug);
  CHECK(options({"-d", "start"}).debug);
  CHECK(options({"start", "-d"}).debug);
  CHECK(options({"--debug", "start", "--log-level=error"}).log_level == lpp::log::Level::kDebug);
  CHECK(options({"start"}, {{"RANCHER_DEBUG", "1"}}).debug);
  CHECK_FALSE(options({"start", "--debug=false"}, {{"RANCHER_DEBUG", "1"}}).debug);
  CHECK_FALSE(options({"--debug", "start", "--debug=false"}).debug);
}

TEST_CASE("the name with free space is another one, and one that a CSIDriver can have") {
  CHECK(options({"start"}).capacity_provisioner_name.empty());
  CHECK(options({"start", "--capacity-provisioner-name="}).capacity_provisioner_name.empty());
  CHECK(options({"start", "--capacity-provisioner-name", std::string(63, 'a')})
            .served_names()
            .has(std::string(63, 'a')));
  for (const std::string& bad :
       {std::string("rancher.io/local-path"), std::string(64, 'a'), std::string("Local-Path"),
        std::string("local_path"), std::string("-a"), std::string("a."), std::string(" ")}) {
    CAPTURE(bad);
    check_refused({"start", "--capacity-provisioner-name", bad}, {}, "without a slash");
    check_refused({"start"}, {{"CAPACITY_PROVISIONER_NAME", bad}}, "without a slash");
  }
  check_refused({"start", "--provisioner-name", "local", "--capacity-provisioner-name", "local"},
                {}, "must be another name");
}

TEST_CASE("a variable is read where the flag is absent") {
  struct Case {
    std::string variable;
    std::string value;
    std::string flag;  // wins
    std::string flag_value;
    std::function<std::string(const Options&)> get;
  };
  const Case cases[] = {
      {"PROVISIONER_NAME", "a.io/b", "--provisioner-name", "c.io/d",
       [](const Options& o) { return o.provisioner_name; }},
      {"CAPACITY_PROVISIONER_NAME", "a.io", "--capacity-provisioner-name", "c.io",
       [](const Options& o) { return o.capacity_provisioner_name; }},
      {"POD_NAMESPACE", "ns-a", "--namespace", "ns-b",
       [](const Options& o) { return o.namespace_name; }},
      {"HELPER_IMAGE", "img:a", "--helper-image", "img:b",
       [](const Options& o) { return o.helper_image; }},
      {"SERVICE_ACCOUNT_NAME", "sa-a", "--service-account-name", "sa-b",
       [](const Options& o) { return o.service_account_name; }},
      {"HEALTH_PORT", "9000", "--health-port", "9001",
       [](const Options& o) { return std::to_string(o.health_port); }},
      {"ALLOW_UNSAFE_HELPER_POD_TEMPLATE", "true", "--allow-unsafe-helper-pod-template", "false",
       [](const Options& o) { return o.allow_unsafe_helper_pod_template ? "true" : "false"; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.variable);
    CHECK(c.get(options({"start"}, {{c.variable, c.value}})) == c.value);
    CHECK(c.get(options({"start", c.flag + "=" + c.flag_value}, {{c.variable, c.value}})) ==
          c.flag_value);
  }
  CHECK(options({"start"}, {{"CONFIG_MOUNT_PATH", "/etc/config/"}}).config_mount_path ==
        "/etc/config/");
}

TEST_CASE("an empty variable overrides a text's default and is refused") {
  for (const std::string variable :
       {"PROVISIONER_NAME", "POD_NAMESPACE", "HELPER_IMAGE", "SERVICE_ACCOUNT_NAME"}) {
    CAPTURE(variable);
    check_refused({"start"}, {{variable, ""}}, "$" + variable + "=\"\": expected ");
  }
}

TEST_CASE("an empty variable of a number or boolean is ignored, a malformed one refused") {
  const Environment empty = {
      {"HEALTH_PORT", ""}, {"RANCHER_DEBUG", ""}, {"ALLOW_UNSAFE_HELPER_POD_TEMPLATE", ""}};
  const Options o = options({"start"}, empty);
  CHECK(o.health_port == 8080);
  CHECK_FALSE(o.debug);
  CHECK_FALSE(o.allow_unsafe_helper_pod_template);

  check_refused({"start"}, {{"HEALTH_PORT", "tcp://10.0.0.1:80"}},
                "$HEALTH_PORT=tcp://10.0.0.1:80: expected a whole number from 0 to 65535");
  check_refused({"start"}, {{"RANCHER_DEBUG", "yes"}}, "$RANCHER_DEBUG");
  check_refused({"start"}, {{"ALLOW_UNSAFE_HELPER_POD_TEMPLATE", "2"}},
                "$ALLOW_UNSAFE_HELPER_POD_TEMPLATE");
}

TEST_CASE("values out of range or of the wrong form are refused by name") {
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"--provisioner-name", {"", "a/b/c", "a b"}},
      {"--namespace", {"", "a.b", "Upper", "a/../b"}},
      {"--helper-image", {"", "a b"}},
      {"--configmap-name", {"", "a/b", "A"}},
      {"--service-account-name", {"", "a/b"}},
      {"--worker-threads", {"", "0", "-1", "1001", "four", "99999999999999999999"}},
      {"--provisioning-retry-count", {"-1", "2147483648", "1.5"}},
      {"--deletion-retry-count", {"-1", "2147483648", "x"}},
      {"--kube-client-qps", {"", "fast", "inf", "nan"}},
      {"--kube-client-burst", {"", "0", "-5", "2147483648", "1.5"}},
      {"--health-port", {"", "-1", "65536", "http"}},
      {"--leader-elect-lease-duration", {"", "15", "0", "-15s", "1500ms", "25h", "10s"}},
      {"--leader-elect-renew-deadline", {"15s", "2s", "0s"}},
      {"--leader-elect-retry-period", {"9s", "0s", "500ms"}},
      {"--leader-elect-resource-name", {"", "a/b"}},
      {"--leader-elect-resource-namespace", {"", "a.b"}},
  };
  for (const auto& [flag, values] : cases) {
    for (const std::string& value : values) {
      CAPTURE(value);
      check_refused({"start", "--leader-elect", fmt::format("{}={}", flag, value)}, {}, flag);
    }
  }
}

TEST_CASE("the client throttle is off by default and by a rate of 0 or less") {
  CHECK(options({"start", "--kube-client-qps=2.5", "--kube-client-burst=7"}).client_throttle ==
        ClientThrottle{.qps = 2.5, .burst = 7});
  CHECK_FALSE(options({"start", "--kube-client-qps=0"}).client_throttle.has_value());
  CHECK_FALSE(options({"start", "--kube-client-qps=-1", "--kube-client-burst=0"})
                  .client_throttle.has_value());
}

TEST_CASE("the lease is named after the provisioner and lives in the daemon's namespace") {
  const Options o = options({"start", "--provisioner-name", "Cluster.local/My_App"},
                            {{"POD_NAMESPACE", "storage"}});
  CHECK(o.leader_election.resource_name == "cluster.local-my-app");
  CHECK(o.leader_election.resource_namespace == "storage");
}

TEST_CASE("timing of the leader election is not judged when it is off") {
  CHECK(options({"start", "--leader-elect-lease-duration=1s"}).leader_election.enabled == false);
}

TEST_CASE("the last of a repeated flag wins") {
  CHECK(options({"start", "--config", "a.json", "--config=b.json"}).config == "b.json");
}

TEST_CASE("a value may begin with a dash, be empty, or be a long text with line breaks") {
  CHECK(options({"start", "--config", "--debug"}).config == "--debug");
  CHECK(options({"start", "--config="}).config.empty());
  const std::string json = "{\n\"a=b\": \"" + std::string(300'000, 'x') + "\"}";
  CHECK(options({"start", "--config", json}).config == json);
  CHECK(options({"start", "--config=" + json}).config == json);
}

TEST_CASE("surplus arguments are not used, and that is said") {
  const Options o = options({"start", "one", "--worker-threads=2", "-", "--", "--two"});
  CHECK(o.worker_threads == 2);
  REQUIRE(o.warnings.size() == 3);
  CHECK(o.warnings[0] == "argument one is not used");
  CHECK(o.warnings[2] == "argument --two is not used");
}

TEST_CASE("an unknown flag is refused with the nearest known one") {
  check_refused({"start", "--worker-thread=3"}, {}, "did you mean --worker-threads?");
  check_refused({"start", "-confg", "x"}, {}, "unknown flag -confg; did you mean --config?");
  check_refused({"--debg", "start"}, {}, "did you mean --debug?");
  const PrintAndExit far = text({"start", "--quux-zebra"});
  CHECK(far.text.find("did you mean") == std::string::npos);
  CHECK(text({"start", "--" + std::string(100'000, 'a')}).exit_code == 2);
}

TEST_CASE("a command's flags may stand before it; without the command its place is said") {
  CHECK(options({"--config", "x.json", "start"}).config == "x.json");
  CHECK(options({"--config", "start", "start"}).config == "start");
  CHECK(options({"--config=x.json", "start", "--config", "y.json"}).config == "y.json");
  check_refused({"--worker-threads", "1"}, {}, "local-path-provisioner start --worker-threads");
  check_refused({"--kubeconfig", "x"}, {}, "COMMAND --kubeconfig");
}

TEST_CASE("short flags before the command may be one, with a value that is no command") {
  const auto call = [](const Arguments& arguments) {
    const auto none = [](const std::string&) { return std::optional<std::string>(); };
    const auto parsed = parse_command_line(arguments, none);
    const auto* const found = std::get_if<lpp::cli::Call>(&parsed);
    REQUIRE(found != nullptr);
    return *found;
  };
  for (const Arguments& arguments :
       {Arguments{"-Ao", "check", "volumes"}, Arguments{"-Aocheck", "volumes"},
        Arguments{"-A", "-o=check", "volumes"}, Arguments{"volumes", "-Ao", "check"}}) {
    const auto found = call(arguments);
    CHECK(found.command->name == "volumes");
    CHECK(found.given.flags.at("output") == std::vector<std::string>{"check"});
    CHECK(found.given.asked_for("all-namespaces"));
  }
}

TEST_CASE("under the name that kubectl asks for completion, all words are what is completed") {
  const char* const argv[] = {"/usr/bin/kubectl_complete-local_path", "volumes", "--help", "-n",
                              ""};
  const auto parsed = parse_command_line(5, argv);
  const auto* const call = std::get_if<lpp::cli::Call>(&parsed);
  REQUIRE(call != nullptr);
  CHECK(call->command->name == "__complete");
  CHECK(call->given.words == std::vector<std::string>{"volumes", "--help", "-n", ""});
}

TEST_CASE("a global flag that is neither true nor false is refused") {
  check_refused({"start", "--debug=banana"}, {}, "banana");
  check_refused({"--debug=banana", "volumes"}, {}, "banana");
  check_refused({"volumes"}, {{"RANCHER_DEBUG", "banana"}}, "banana");
}

TEST_CASE("without a command the help is printed") {
  for (const Arguments& arguments : {Arguments{}, Arguments{"--debug"}}) {
    CHECK(text(arguments).exit_code == 0);
    CHECK(text(arguments).text == text({"--help"}).text);
  }
}

TEST_CASE("an unknown command is refused with usage") {
  check_refused({"stat"}, {}, "there is no command stat; did you mean start?");
  check_refused({"help", "nothing"}, {}, "there is no command nothing");
  check_refused({""}, {}, "there is no command \"\"");
}

TEST_CASE("the version is one line") {
  const std::string line = "local-path-provisioner version " + std::string(version()) + "\n";
  for (const Arguments& arguments :
       {Arguments{"--version"}, Arguments{"-v"}, Arguments{"start", "--version"}}) {
    CHECK(text(arguments).text == line);
    CHECK(text(arguments).exit_code == 0);
  }
}

TEST_CASE("the help names every flag with its default and its variable") {
  for (const Arguments& arguments : {Arguments{"start", "--help"}, Arguments{"start", "-h"},
                                     Arguments{"help", "start"}, Arguments{"--help", "start"}}) {
    const PrintAndExit out = text(arguments);
    CHECK(out.exit_code == 0);
    for (const std::string expected : {"--config FILE",
                                       "--provisioner-name NAME",
                                       "(default: rancher.io/local-path)",
                                       "[$PROVISIONER_NAME]",
                                       "[$POD_NAMESPACE]",
                                       "[$HELPER_IMAGE]",
                                       "--kubeconfig FILE",
                                       "--configmap-name NAME",
                                       "[$SERVICE_ACCOUNT_NAME]",
                                       "--helper-pod-file FILE",
                                       "--worker-threads COUNT",
                                       "(default: 16)",
                                       "--provisioning-retry-count COUNT",
                                       "--deletion-retry-count COUNT",
                                       "[$ALLOW_UNSAFE_HELPER_POD_TEMPLATE]",
                                       "--kube-client-burst COUNT",
                                       "--kube-client-qps NUMBER",
                                       "[$HEALTH_PORT]",
                                       "--leader-elect-retry-period DURATION",
                                       "-d, --debug",
                                       "[$RANCHER_DEBUG]"}) {
      CAPTURE(expected);
      CHECK(out.text.find(expected) != std::string::npos);
    }
  }
  for (const Arguments& arguments : {Arguments{"--help"}, Arguments{"-h"}, Arguments{"help"}}) {
    CHECK(text(arguments).exit_code == 0);
    for (const lpp::cli::Command* command : all_commands()) {
      CAPTURE(command->name);
      const std::string line = fmt::format("\n  {} ", command->name);
      CHECK((text(arguments).text.find(line) != std::string::npos) == !command->hidden);
    }
  }
}

TEST_CASE("no line of the help is wider than a terminal of 100 columns") {
  std::vector<Arguments> helps{{"--help"}};
  for (const lpp::cli::Command* command : all_commands()) {
    helps.push_back({"help", std::string(command->name)});
  }
  for (const Arguments& arguments : helps) {
    CAPTURE(arguments.back());
    std::size_t width = 0;
    for (const char c : text(arguments).text) {
      width = c == '\n' ? 0 : width + 1;
      CHECK(width <= 100);
    }
  }
}

TEST_CASE("each command answers --help, and refuses what it does not know") {
  for (const lpp::cli::Command* command : all_commands()) {
    const std::string name(command->name);
    CAPTURE(name);
    CHECK(text({name, "--help"}).exit_code == 0);
    CHECK(text({name, "--help"}).text == text({"help", name}).text);
    CHECK(text({name, "--help"}).text.find("Usage:\n  local-path-provisioner " + name) !=
          std::string::npos);
    check_refused({name, "--helq"}, {}, "unknown flag --helq; did you mean --help?");
  }
}

TEST_CASE("under kubectl the help speaks of kubectl local-path") {
  CHECK(program_name("/usr/local/bin/kubectl-local_path") == "kubectl local-path");
  CHECK(program_name("kubectl-local_path") == "kubectl local-path");
  CHECK(program_name("/usr/bin/local-path-provisioner") == "local-path-provisioner");
  CHECK(program_name("") == "local-path-provisioner");
  const auto getenv = [](const std::string&) { return std::optional<std::string>(); };
  const auto out =
      std::get<PrintAndExit>(parse_command_line({"help", "version"}, getenv, "kubectl local-path"));
  CHECK(out.text.find("Usage:\n  kubectl local-path version") != std::string::npos);
}

TEST_CASE("the log's level and form are chosen by flag") {
  CHECK(options({"start"}).log_level == lpp::log::Level::kInfo);
  CHECK(options({"start"}).log_format == lpp::log::Format::kText);
  CHECK(options({"start", "--log-level", "debug"}).log_level == lpp::log::Level::kDebug);
  CHECK(options({"start", "--log-level", "warn"}).log_level == lpp::log::Level::kWarn);
  CHECK(options({"start", "--log-level=error"}).log_level == lpp::log::Level::kError);
  CHECK(options({"start", "--log-format=json"}).log_format == lpp::log::Format::kJson);
  check_refused({"start", "--log-level=loud"}, {},
                "--log-level=loud: expected one of debug|info|warn|error");
  check_refused({"start", "--log-format=xml"}, {}, "--log-format=xml: expected one of text|json");
}

TEST_CASE("metrics and the status page can be switched off") {
  CHECK(options({"start"}).metrics);
  CHECK(options({"start"}).statusz);
  CHECK_FALSE(options({"start", "--metrics=false"}).metrics);
  CHECK_FALSE(options({"start", "--statusz=false"}).statusz);
}

TEST_CASE("claims are bound unless --bind-claims=false leaves that to the control plane") {
  CHECK(options({"start"}).bind_claims);
  CHECK_FALSE(options({"start", "--bind-claims=false"}).bind_claims);
}
