// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"

namespace lpp::testing {

/// Runs commands without a process: collects their output; files and API server are the test's.
struct CliBed {
  struct Outcome {
    int code = 0;
    std::string out{};
    std::string err{};
  };

  FakeClock clock{};
  Clock* other_clock = nullptr;  // in its place, for commands that wait
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  std::map<std::string, std::string> files{};
  std::map<std::string, std::string> environment{};
  std::optional<Error> connect_error{};
  std::vector<std::string> connected_with{};  // "<kubeconfig> <context>"
  std::vector<cli::ConnectionRequest> requests{};
  k8s::KubeconfigNames kubeconfig_names{};
  cli::Terminal terminal{};
  std::shared_ptr<node::Kernel> kernel = std::make_shared<node::Kernel>();
  std::stop_source stop{};             // what a signal does to commands that take it for a stop
  std::vector<std::string> signals{};  // what commands that mind signals have said of them

  /// Answers lists of a kind with these objects, and of what has no answer yet with none.
  void serve(const std::string& path, const std::vector<nlohmann::json>& objects) {
    const std::string body = nlohmann::json{{"items", objects}}.dump();
    transport->on("GET", path).always([body](const auto&) {
      return k8s::Response{.status = 200, .body = body, .content_type = "application/json"};
    });
  }
  void serve_nothing_else() {
    transport->on("GET", "").always([](const k8s::Request& request) {
      const bool one = request.target.find('?') == std::string::npos;
      return one ? k8s::Response{.status = 404, .body = "{}", .content_type = "application/json"}
                 : k8s::Response{.status = 200,
                                 .body = R"({"items":[]})",
                                 .content_type = "application/json"};
    });
  }

  /// The first argument is the command's name.
  Outcome run(const std::vector<std::string>& arguments) {
    std::vector<const cli::Command*> all{&start_command()};
    for (const cli::Command& command : cli::commands()) all.push_back(&command);
    const cli::Command* const command = cli::find_command(all, arguments.front());
    Outcome outcome;
    const auto given = cli::parse_flags(std::span(arguments).subspan(1), cli::all_flags(*command));
    if (!given.ok()) return {cli::kExitUsage, "", given.error().message};
    cli::Context context{.clock = other_clock == nullptr ? clock : *other_clock};
    context.program = "local-path-provisioner";
    context.version = "1.2.3";
    context.commands = all;
    context.terminal = terminal;
    context.kernel = kernel;
    context.end_on_signal = [this] { signals.emplace_back("end"); };
    context.stop_on_signal = [this] {
      signals.emplace_back("stop");
      return stop.get_token();
    };
    context.getenv = [this](const std::string& name) -> std::optional<std::string> {
      const auto it = environment.find(name);
      return it == environment.end() ? std::nullopt : std::optional(it->second);
    };
    context.out = [&](std::string_view text) { outcome.out += text; };
    context.err = [&](std::string_view text) { outcome.err += text; };
    context.read_file = [this](const std::string& name) -> Result<std::string> {
      const auto it = files.find(name);
      if (it == files.end()) return Error{ErrorCode::kNotFound, name + ": no such file"};
      return it->second;
    };
    context.kubeconfig_names = [this](const std::string&) { return kubeconfig_names; };
    context.connect = [this](const cli::ConnectionRequest& request) -> Result<cli::Connection> {
      connected_with.push_back(request.kubeconfig + " " + request.choice.context);
      requests.push_back(request);
      if (connect_error) return *connect_error;
      return cli::Connection{.transport = std::make_unique<Borrowed>(transport),
                             .source = "kubeconfig test, context test",
                             .default_namespace = "default"};
    };
    outcome.code = command->run(*given, context);
    return outcome;
  }

 private:
  /// Flags of the daemon that commands read in its Deployment.
  static const cli::Command& start_command() {
    static constexpr std::array kFlags = {
        cli::Flag{.name = "provisioner-name",
                  .placeholder = "NAME",
                  .env = "PROVISIONER_NAME",
                  .fallback = "rancher.io/local-path"},
        cli::Flag{.name = "capacity-provisioner-name",
                  .placeholder = "NAME",
                  .env = "CAPACITY_PROVISIONER_NAME"},
        cli::Flag{.name = "namespace",
                  .placeholder = "NAME",
                  .env = "POD_NAMESPACE",
                  .fallback = "local-path-storage"},
        cli::Flag{.name = "configmap-name", .placeholder = "NAME", .fallback = "local-path-config"},
        cli::Flag{.name = "config", .placeholder = "FILE"},
        cli::Flag{.name = "helper-image", .env = "HELPER_IMAGE", .fallback = "busybox:1"},
        cli::Flag{.name = "agents", .env = "AGENTS", .fallback = "false"},
        cli::Flag{.name = "agents-port", .fallback = "8443"},
        cli::Flag{.name = "agents-service", .fallback = "local-path-provisioner-agents"},
        cli::Flag{.name = "agents-service-account", .fallback = "local-path-provisioner-agent"},
        cli::Flag{.name = "leader-elect", .fallback = "false"},
        cli::Flag{.name = "leader-elect-resource-name", .placeholder = "NAME"},
        cli::Flag{.name = "leader-elect-resource-namespace", .placeholder = "NAME"},
        cli::Flag{.name = "allow-unsafe-helper-pod-template",
                  .env = "ALLOW_UNSAFE_HELPER_POD_TEMPLATE",
                  .fallback = "false"},
    };
    static constexpr std::array kGroups = {cli::FlagGroup{"Flags", kFlags}};
    static constexpr cli::Command kStart{.name = "start", .summary = "serve", .flags = kGroups};
    return kStart;
  }

  struct Borrowed final : k8s::Transport {
    explicit Borrowed(std::shared_ptr<FakeTransport> other) : transport(std::move(other)) {}
    Result<k8s::Response> round_trip(const k8s::Request& request,
                                     const std::stop_token& token) override {
      return transport->round_trip(request, token);
    }
    Result<k8s::Response> stream(const k8s::Request& request, const k8s::ChunkSink& sink,
                                 const std::stop_token& token) override {
      return transport->stream(request, sink, token);
    }
    const std::shared_ptr<FakeTransport> transport;
  };
};

}  // namespace lpp::testing
