// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

/// What a container is to this cluster: a process under bubblewrap over a root file system made of
/// one static busybox. Where bubblewrap cannot make its namespaces, as in most containers, proot
/// gives the process its view of the files instead, and nothing keeps it from other processes and
/// the network. Good enough to run shell scripts on volumes; not a security boundary.
namespace lpp::devcluster {

enum class SandboxKind { kBubblewrap, kProot };

/// Programs the sandbox is made of, found and tried once per cluster.
struct SandboxTools {
  SandboxKind kind = SandboxKind::kBubblewrap;
  std::string program;  // absolute path of bwrap or proot
  std::string busybox;  // absolute path of a statically linked busybox
  bool root = false;    // else containers run as uid 0 of a user namespace, or of proot's making
  std::string why_not_bwrap{};  // why it is proot
  bool read_only = true;        // mounts can be; not by proot on a kernel without Landlock

  /// "bubblewrap", or "proot, without isolation (bubblewrap cannot ...)".
  std::string description() const;
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

/// Finds bwrap or, if it cannot make a sandbox, proot, and a static busybox (on PATH, or `busybox`
/// if not empty); runs one sandbox. The error says what is missing and how to get it.
Result<SandboxTools> find_sandbox_tools(const std::string& busybox = {});
/// The same for one kind only.
Result<SandboxTools> find_sandbox_tools(SandboxKind kind, const std::string& busybox = {});

/// Makes the container's /bin below `folder`: busybox and a link per applet. Repeatable.
Result<void> make_image_root(const SandboxTools& tools, const std::string& folder);

/// The command line; what is to be said about the run goes to `status_fd` as JSON. Pure for
/// bubblewrap; for proot the container's own root folder and the mount points are made in `folder`,
/// which must be new and may go when the sandbox has ended. What makes the sandbox impossible, the
/// command says when it runs.
std::vector<std::string> sandbox_command(const SandboxTools& tools, const SandboxSpec& spec,
                                         int status_fd, const std::string& folder);

std::vector<std::string> bwrap_command(const SandboxTools& tools, const SandboxSpec& spec,
                                       int status_fd);
std::vector<std::string> proot_command(const SandboxTools& tools, const SandboxSpec& spec,
                                       int status_fd, const std::string& folder);

/// The capabilities that the program of a sandbox made by root keeps, by their kernel names; none:
/// all of them.
std::optional<std::set<std::string>> kept_capabilities(const SandboxSpec& spec);

}  // namespace lpp::devcluster
