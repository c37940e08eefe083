// SPDX-License-Identifier: Apache-2.0
#include "cli/context.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"
#include "config/file_source.h"
#include "flags/flag_values.h"
#include "k8s/httplib_transport.h"

namespace lpp::cli {

namespace {

constexpr std::size_t kMaxFile = 16UL * 1024 * 1024;

/// Standard output or error. Returns errno of the first write that failed, 0 otherwise; a reader
/// that has gone away is no error of ours.
int write_all(std::FILE* stream, std::string_view text) {
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  return written || errno == EPIPE ? 0 : errno;
}

Result<std::string> read_all(int fd, const std::string& name) {
  std::string text;
  std::array<char, 65536> chunk{};
  while (true) {
    const auto count = ::read(fd, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return invalid(name + ": cannot be read");
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxFile) return invalid(name + ": is too long");
  }
}

Result<std::string> read_standard_input() { return read_all(STDIN_FILENO, "standard input"); }

/// A person who names a pipe, as `check -f <(helm template .)` does, means to wait for it.
Result<std::string> read_file_or_pipe(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return config::read_text_file(file, kMaxFile);
  }
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return config::read_text_file(file, kMaxFile);
  return read_all(fd.get(), file);
}

int terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool set_to_something(const std::optional<std::string>& variable) {
  return variable && !variable->empty();
}

k8s::RestConfigSources sources_of(const GetEnv& getenv, const std::string& kubeconfig) {
  k8s::RestConfigSources sources;
  sources.kubeconfig_flag = kubeconfig;
  sources.as_kubectl = true;
  sources.getenv = getenv;
  return sources;
}

Result<Connection> connect(Clock& clock, const GetEnv& getenv, const std::string& version,
                           const ConnectionRequest& request) {
  auto sources = sources_of(getenv, request.kubeconfig);
  sources.choice = request.choice;
  sources.impersonate = request.impersonate;
  auto config = k8s::load_rest_config(sources);
  if (!config.ok()) return std::move(config).error();
  // In the API server's audit log it is not taken for the daemon, whose account it may use.
  config->user_agent = "local-path-provisioner/" + version + " (command)";
  LPP_ASSIGN_OR_RETURN(auto transport, k8s::make_httplib_transport(*config, clock), "connect");
  return Connection{.transport = std::move(transport),
                    .source = config->source,
                    .default_namespace = config->default_namespace};
}

}  // namespace

Context process_context(Clock& clock, GetEnv getenv, std::string version) {
  Context context{.clock = clock};
  const bool wants_no_colour =
      set_to_something(getenv("NO_COLOR")) || getenv("TERM").value_or("dumb") == "dumb";
  context.terminal = {.colours = isatty(STDOUT_FILENO) != 0 && !wants_no_colour,
                      .progress = isatty(STDERR_FILENO) != 0,
                      .width = terminal_width()};
  context.out = [failed = context.output_failed](std::string_view text) {
    if (const int number = write_all(stdout, text); number != 0 && *failed == 0) *failed = number;
  };
  context.err = [](std::string_view text) { write_all(stderr, text); };
  context.read_file = [](const std::string& file) {
    return file == "-" ? read_standard_input() : read_file_or_pipe(file);
  };
  context.connect = [&clock, getenv, version](const ConnectionRequest& request) {
    return connect(clock, getenv, version, request);
  };
  context.kubeconfig_names = [getenv](const std::string& kubeconfig) {
    return k8s::kubeconfig_names(sources_of(getenv, kubeconfig));
  };
  context.getenv = std::move(getenv);
  context.version = std::move(version);
  return context;
}

int run(const Call& call, Context& context) {
  // A server that closes its connection, or a pager that is left, must not end the process.
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(concurrency-mt-unsafe): before any thread
  const bool debug =
      call.given.asked_for("debug") ||
      (call.given.flags.count("debug") == 0 &&
       flags::parse_go_bool(context.getenv("RANCHER_DEBUG").value_or("")).value_or(false));
  log::set_up(debug ? log::Level::kDebug : log::Level::kError);
  const int code = call.command->run(call.given, context);
  if (*context.output_failed == 0) return code;
  const int other = fail(context, call.command->name,
                         Error{.code = ErrorCode::kInternal,
                               .message = "standard output cannot be written: " +
                                          std::generic_category().message(*context.output_failed)},
                         kExitProblem);
  return code == kExitOk ? other : code;
}

int fail(Context& context, std::string_view command, const Error& error, int exit_code) {
  // What a command waits for may stand in the line still.
  const std::string_view erase = context.terminal.progress ? kEraseLine : std::string_view();
  context.err(fmt::format("{}{} {}: {}\n", erase, context.program, command, error.message));
  return exit_code;
}

}  // namespace lpp::cli
