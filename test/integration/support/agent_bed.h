// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/agent_account.h"
#include "harness/agent_process.h"
#include "harness/embedded/embedded_bed.h"
#include "harness/file_text.h"
#include "harness/http_get.h"
#include "harness/installation.h"
#include "harness/kinds.h"
#include "harness/must.h"
#include "harness/process_probe.h"
#include "harness/sanitizer_report.h"
#include "harness/tcp_relay.h"
#include "harness/temp_dir.h"

namespace lpp::testing {

/// The agents of an embedded cluster's nodes as processes, each with what its pod would be given:
/// the base paths, a token of its own and the authority's certificate. One thread.
class NodeAgents {
 public:
  NodeAgents(EmbeddedBed& bed, std::string program)
      : bed_(bed), program_(std::move(program)), port_(free_port()) {}
  ~NodeAgents() {
    for (const auto& [node, agent] : agents_) agent->signal(SIGCONT);
  }
  NodeAgents(const NodeAgents&) = delete;
  NodeAgents& operator=(const NodeAgents&) = delete;

  /// Instead of the program under test, for agents that are started after this.
  void run(std::string program, std::map<std::string, std::string> env) {
    program_ = std::move(program);
    env_ = std::move(env);
  }
  /// Agents that are started after this reach the controller by a line that can be broken.
  void lay_line() { line_ = LPP_MUST(TcpRelay::start(port_)); }
  TcpRelay& line() { return *line_; }
  /// At which the controller is to serve them.
  int port() const { return port_; }
  /// Arguments of one more replica that is to serve them; for agents that are started after this.
  std::vector<std::string> with_port(std::vector<std::string> args) {
    const int port = more_ports_.emplace_back(free_port());
    args.insert(args.end(), {"--agents", "--agents-port", std::to_string(port)});
    return args;
  }
  std::string ca_file() const { return folder_.path("ca.crt"); }
  std::string log_file(const std::string& node) const { return folder_.path(node + ".log"); }
  std::string token_file(const std::string& node) const { return folder_.path(node + ".token"); }
  std::string token(const std::string& node, const std::string& pod = "") {
    return LPP_MUST(agent_token(bed_.admin(), kDaemonNamespace, node, pod));
  }

  /// As the kubelet does when the ConfigMap changes.
  void write_ca(const std::string& pem) const { std::ofstream(ca_file()) << pem; }
  /// Waits for the ConfigMap, which the controller makes when it leads.
  void take_ca() {
    const k8s::ObjectKey key{kDaemonNamespace, "local-path-provisioner-agents-ca"};
    LPP_MUST(wait_until(
        "the agents' ConfigMap is there",
        [&]() -> std::string {
          const auto map = bed_.admin().get(k8s::kConfigMaps, key);
          if (!map.ok()) return map.error().message;
          const std::string pem = (*map)["data"].value("ca.crt", "");
          if (pem.empty()) return "it is empty";
          write_ca(pem);
          return "";
        },
        bed_.patience()));
  }

  /// Starts it anew if it runs; does not wait for anything.
  void start(const std::string& node, const std::vector<std::string>& more = {}) {
    agents_.erase(node);
    std::vector<std::string> args{"--node-name", node, "--debug"};
    args.insert(args.end(), more.begin(), more.end());
    for (const auto& base : bed_.base_paths()) {
      std::filesystem::create_directories(bed_.on_disk(node, base));
    }
    std::ofstream(token_file(node)) << token(node);
    agents_[node] = LPP_MUST(AgentProcess::start({.program = program_,
                                                  .controller = controllers(),
                                                  .ca_file = ca_file(),
                                                  .token_file = token_file(node),
                                                  .root = bed_.cluster().disk_root(node),
                                                  .args = std::move(args),
                                                  .env = env_,
                                                  .log_file = log_file(node)}));
  }
  AgentProcess& of(const std::string& node) { return *agents_.at(node); }
  void wait_connected(const std::string& node) {
    LPP_MUST(of(node).wait_connected(bed_.patience().limit));
  }
  void start_all() {
    for (const auto& node : bed_.nodes()) start(node);
    for (const auto& node : bed_.nodes()) wait_connected(node);
  }
  /// It neither works nor speaks, but its connection stays.
  void freeze(const std::string& node) { REQUIRE(testing::freeze(of(node).pid())); }
  void thaw(const std::string& node) { of(node).signal(SIGCONT); }

  /// "" unless a sanitizer has said something in one of them.
  std::string sanitizer_reports() const {
    std::string all;
    for (const auto& node : bed_.nodes()) all += sanitizer_report(text_of(log_file(node)));
    return all;
  }

 private:
  std::string controllers() const {
    const int port = line_ == nullptr ? port_ : line_->port();
    std::string urls = "https://127.0.0.1:" + std::to_string(port);
    for (const int more : more_ports_) urls += ",https://127.0.0.1:" + std::to_string(more);
    return urls;
  }

  EmbeddedBed& bed_;
  std::string program_;
  std::map<std::string, std::string> env_;
  const int port_;
  std::vector<int> more_ports_;
  std::unique_ptr<TcpRelay> line_;  // nullptr: none was laid
  const TempDir folder_;
  std::map<std::string, std::unique_ptr<AgentProcess>> agents_;
};

}  // namespace lpp::testing
