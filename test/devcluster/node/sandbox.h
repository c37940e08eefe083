#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

/// What a container is to this cluster: a process under bubblewrap over a root file system made of
/// one static busybox. Good enough to run shell scripts on volumes; not a security boundary.
namespace lpp::devcluster {

/// Programs the sandbox is made of, found and tried once per cluster.
struct SandboxTools {
  std::string bwrap;    // absolute path
  std::string busybox;  // absolute path of a statically linked busybox
  bool root = false;    // else everything runs in a user namespace as uid 0
};

struct SandboxMount {
  std::string source;  // on the machine; must exist
  std::string target;  // in the container; created when missing
  bool read_only = false;
};

struct SandboxSpec {
  std::string image_root;  // folder made by make_image_root()
  std::string hostname;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;  // "": /
  std::vector<SandboxMount> mounts;
  std::string passwd_file;  // on the machine; names the user when uid is set
  unsigned uid = 0;
  unsigned gid = 0;
  bool privileged = false;
  bool drop_all_capabilities = false;
  std::vector<std::string> add_capabilities;   // "CHOWN" or "CAP_CHOWN"
  std::vector<std::string> drop_capabilities;  // likewise
  bool read_only_root = false;
};

/// Finds bwrap and a static busybox (on PATH, or `busybox` if not empty) and runs one sandbox. The
/// error says what is missing and how to get it.
Result<SandboxTools> find_sandbox_tools(const std::string& busybox = {});

/// Makes the container's /bin below `folder`: busybox and a link per applet. Repeatable.
Result<void> make_image_root(const SandboxTools& tools, const std::string& folder);

/// The command line; what bwrap has to say about the run goes to `status_fd` as JSON. Pure.
std::vector<std::string> bwrap_command(const SandboxTools& tools, const SandboxSpec& spec,
                                       int status_fd);

}  // namespace lpp::devcluster
