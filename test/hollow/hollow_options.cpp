// SPDX-License-Identifier: Apache-2.0
#include "hollow/hollow_options.h"

#include <charconv>
#include <map>

namespace lpp::hollow {

namespace {

Result<std::size_t> number(const std::string& flag, const std::string& text) {
  std::size_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code != std::errc{} || end != last || value > 1'000'000) {
    return invalid("--" + flag + ": not a number of at most 1000000: " + text);
  }
  return value;
}

Result<void> set(Options& options, const std::string& flag, const std::string& text) {
  if (flag == "kubeconfig") {
    options.kubeconfig = text;
    return {};
  }
  if (flag == "prefix") {
    options.prefix = text;
    return {};
  }
  if (flag == "message") {
    options.message = text;
    return {};
  }
  if (flag == "phases") {
    if (text != "full" && text != "final") return invalid("--phases: full or final, not " + text);
    options.write_running = text == "full";
    return {};
  }
  if (flag == "keep-nodes") {
    options.remove_nodes = text != "true";
    return {};
  }
  LPP_ASSIGN_OR_RETURN(const std::size_t value, number(flag, text), "flags");
  if (flag == "nodes") {
    options.nodes = value;
  } else if (flag == "delay-ms") {
    options.delay = std::chrono::milliseconds(value);
  } else if (flag == "start-delay-ms") {
    options.start_delay = std::chrono::milliseconds(value);
  } else if (flag == "fail-every") {
    options.fail_every = value;
  } else if (flag == "workers") {
    options.workers = value;
  } else if (flag == "lease-s") {
    options.lease_period = std::chrono::seconds(value);
  } else {
    return invalid("unknown flag --" + flag);
  }
  return {};
}

}  // namespace

std::string_view usage() {
  return R"(lpp-hollow-kubelet --kubeconfig FILE [flags]

Registers Ready nodes that run nothing, and plays the kubelet for the pods that are bound to them:
they become Running and, when their restartPolicy is Never, end after a while. For load tests.

  --kubeconfig FILE      an administrator of the cluster
  --nodes N              how many nodes (1)
  --prefix TEXT          node i is called TEXTi (hollow-)
  --start-delay-ms N     from the binding to Running (0)
  --delay-ms N           from Running to Succeeded or Failed (1000)
  --phases full|final    whether Running is written, or only the end (full)
  --fail-every N         every Nth pod that ends is Failed; 0 = none (0)
  --message TEXT         termination message of pods that succeed, as a helper pod tells the space
  --workers N            API calls at once (8)
  --lease-s N            period of the nodes' heartbeats (10)
  --keep-nodes true      leave the Node objects behind

Prints "ready" once the nodes are there and the pods are followed; ends on SIGTERM or SIGINT.
)";
}

Result<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!flag.starts_with("--")) return invalid("not a flag: " + flag);
    flag.erase(0, 2);
    std::string value;
    if (const auto equals = flag.find('='); equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return invalid("--" + flag + ": the value is missing");
    }
    LPP_RETURN_IF_ERROR(set(options, flag, value), "lpp-hollow-kubelet");
  }
  if (options.kubeconfig.empty()) return invalid("--kubeconfig is missing");
  if (options.nodes == 0 || options.workers == 0 || options.lease_period.count() == 0) {
    return invalid("--nodes, --workers and --lease-s must be at least 1");
  }
  return options;
}

std::vector<std::string> node_names(const Options& options) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < options.nodes; ++i)
    names.push_back(options.prefix + std::to_string(i));
  return names;
}

}  // namespace lpp::hollow
