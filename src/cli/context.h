// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command.h"
#include "k8s/rest_config.h"
#include "k8s/transport.h"
#include "node/kernel.h"

namespace lpp::cli {

/// Where a command's output goes.
struct Terminal {
  bool colours = false;   // standard output is a terminal, and NO_COLOR is not set
  bool progress = false;  // standard error is a terminal
  int width = 0;          // columns of standard output; 0 = not a terminal, never shortened
};

/// Takes away what stands in a terminal's line.
inline constexpr std::string_view kEraseLine = "\r\x1b[K";

/// How the API server is to be reached, as kubectl's flags of these names say; "" = not given.
struct ConnectionRequest {
  std::string kubeconfig{};
  k8s::KubeconfigChoice choice{};
  k8s::Impersonation impersonate{};
  std::optional<std::chrono::milliseconds> request_timeout{};  // of each call
};

/// A way to the API server.
struct Connection {
  std::unique_ptr<k8s::Transport> transport{};
  std::string source{};             // "kubeconfig <file>, context <name>" or "in-cluster"
  std::string default_namespace{};  // "" = unknown
};

/// Everything outside the program that a command may use, so that tests can put something else in
/// its place. Commands run on one thread.
struct Context {
  std::string program{};  // as the user called it: "local-path-provisioner", "kubectl local-path"
  std::string version{};
  std::span<const Command* const> commands{};  // all, `start` too
  Clock& clock;
  Terminal terminal{};
  GetEnv getenv{};
  std::function<void(std::string_view)> out{};
  std::function<void(std::string_view)> err{};
  /// errno of the first write to standard output that failed; 0 = none. Never null.
  std::shared_ptr<int> output_failed = std::make_shared<int>(0);
  /// A whole file; "-" is standard input. A message of an error begins with the file's name.
  std::function<Result<std::string>(const std::string& file)> read_file{};
  std::function<Result<Connection>(const ConnectionRequest& request)> connect{};
  /// What the kubeconfig holds, for completion.
  std::function<k8s::KubeconfigNames(const std::string& kubeconfig)> kubeconfig_names{};
  /// What SIGTERM and SIGINT do from now on, of a command that minds them: one of the two.
  std::function<void()> end_on_signal{};
  std::function<std::stop_token()> stop_on_signal{};
  /// This machine's. Never null.
  std::shared_ptr<node::Kernel> kernel = std::make_shared<node::Kernel>();
};

/// The process's own, for main(). The clock must outlive it.
Context process_context(Clock& clock, GetEnv getenv, std::string version);

/// Runs the command, with messages of the log on standard error. Returns the exit code.
int run(const Call& call, Context& context);

/// Says on standard error why the command cannot go on.
int fail(Context& context, std::string_view command, const Error& error, int exit_code);

}  // namespace lpp::cli
