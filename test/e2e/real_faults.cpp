// SPDX-License-Identifier: Apache-2.0
#include "real_faults.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include "harness/command_run.h"
#include "places/places.h"

namespace lpp::testing {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds kCommandLimit{120};

/// All of ours: the scripts find their cluster by it.
std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const auto equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

}  // namespace

RealFaults::~RealFaults() { trouble_node({}, {}); }

Result<void> RealFaults::shell(const std::string& line) {
  const std::string scripts = repository("test/e2e/cluster");
  LPP_ASSIGN_OR_RETURN(
      const auto output,
      run_command({.program = "/bin/bash",
                   .args = {"-c", ". \"$0/env.sh\"; . \"$0/process.sh\"; " + line, scripts},
                   .env = environment()},
                  kCommandLimit),
      line);
  if (output.code == 0) return {};
  return Error{.message = fmt::format("{}: exit code {}: {}", line, output.code, output.text)};
}

void RealFaults::note(Result<void> result) {
  if (error_.ok()) error_ = std::move(result);
}

void RealFaults::remove_node(const std::string& node) {
  auto found = bed_.admin().get(k8s::kNodes, {"", node});
  if (!found.ok()) return note(found.error());
  gone_node_ = *std::move(found);
  note(bed_.admin().remove(k8s::kNodes, {"", node}));
}

void RealFaults::return_node(const std::string& node) {
  trouble_node(node, {});  // a kubelet that hangs would not find it
  const json& meta = gone_node_["metadata"];
  const auto made = bed_.admin().create(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata",
        {{"name", node}, {"labels", meta["labels"]}, {"annotations", meta["annotations"]}}}});
  if (!made.ok()) return note(made.error());
  note(wait_until(
      "node " + node + " is back",
      [&]() -> std::string {
        const auto now = bed_.admin().get(k8s::kNodes, {"", node});
        if (!now.ok()) return now.error().message;
        const json conditions =
            now->value("status", json::object()).value("conditions", json::array());
        const bool ready = std::any_of(conditions.begin(), conditions.end(), [](const json& one) {
          return one["type"] == "Ready" && one["status"] == "True";
        });
        if (!ready) return "it is not ready";
        // The API server gives every new Node one, and the controllers take their time.
        if (!(*now)["spec"].contains("taints")) return "";
        const auto free =
            bed_.admin().merge(k8s::kNodes, {"", node}, {{"spec", {{"taints", nullptr}}}});
        return free.ok() ? "it has taints" : free.error().message;
      },
      bed_.patience()));
}

void RealFaults::trouble_node(const std::string& /*node*/, const NodeTrouble& trouble) {
  const auto hang = [this](const char* process, bool now, bool& before) {
    if (now == before) return;
    before = now;
    note(shell(fmt::format("alive {0} && read -r pid _ <\"$RUN/{0}.pid\" && kill -{1} \"$pid\"",
                           process, now ? "STOP" : "CONT")));
  };
  hang("kubelet", trouble.dead, trouble_.dead);
  hang("containerd", trouble.slow, trouble_.slow);
}

void RealFaults::evict(const std::string& ns, const std::string& pod) {
  const auto found = bed_.admin().find(k8s::kPods, {ns, pod});
  if (!found.ok()) return note(found.error());
  if (!found->has_value()) return;
  const std::string uid = (**found)["metadata"]["uid"];
  // The pod's cgroup is called by its UID. Without its sandbox it would not be a pod any more.
  note(
      shell(fmt::format("for file in $(grep -ls pod{} /proc/[0-9]*/cgroup); do "
                        "dir=${{file%/cgroup}}; grep -qsx pause \"$dir/comm\" || "
                        "kill -KILL \"${{dir#/proc/}}\" 2>/dev/null || true; done",
                        uid)));
}

Result<void> RealFaults::kill_api_server() { return shell("stop kube-apiserver 0 quietly"); }

Result<void> RealFaults::start_api_server() { return shell("\"$CLUSTER_DIR/up.sh\""); }

void RealFaults::cut_connections() {
  note(kill_api_server());
  note(start_api_server());
}

}  // namespace lpp::testing
