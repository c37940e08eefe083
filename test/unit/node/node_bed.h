// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/needs.h"
#include "fakes/setting.h"
#include "harness/temp_dir.h"
#include "node/subvolume.h"
#include "node/volumes.h"

namespace lpp::testing {

/// A base folder of a test, in the folder that LPP_NODE_TEST_DIR names: the quota test bed puts a
/// file system with limits there. Else in memory, where fsync costs nothing.
class BaseFolder {
 public:
  BaseFolder() { std::filesystem::permissions(path_, std::filesystem::perms(0755)); }

  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  bool has(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(at(name)));
  }
  void write(const std::string& name, const std::string& text = "data") const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name)) << text;
  }

  /// A directory that a limit can be given to, with the folders around it.
  void make_directory(const std::string& name) const {
    const std::filesystem::path path(at(name));
    std::filesystem::create_directories(path.parent_path());
    if (!has_subvolumes()) {
      std::filesystem::create_directory(path);
      return;
    }
    node::Kernel kernel;
    const UniqueFd parent(kernel.open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY));
    if (kernel.make_subvolume(parent.get(), path.filename().c_str()) != 0) {
      throw std::runtime_error("no subvolume for a test");
    }
  }

  /// Everything in it but the lock and the spare folder, from it, without the records' folder
  /// itself.
  std::set<std::string> content() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_);
      if (name == node::kRecordFolder || name == record("lock") || name == record("spare"))
        continue;
      names.insert(name);
    }
    return names;
  }
  static std::string record(const std::string& name) {
    return std::string(node::kRecordFolder) + "/" + name;
  }

  node::Volumes volumes(node::Kernel& kernel) const {
    auto opened = node::Volumes::open(kernel, path_, {});
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    return std::move(opened).value();
  }

  /// The folder around all base folders, and whether limits can be set there.
  static std::string root() {
    if (const auto named = setting("LPP_NODE_TEST_DIR")) return *named;
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                           : std::filesystem::temp_directory_path().string();
  }
  static bool has_limits() {
    node::Kernel kernel;
    const UniqueFd fd(kernel.open(root().c_str(), O_RDONLY | O_DIRECTORY));
    return node::ProjectQuota::open(kernel, fd.get()).ok();
  }
  static bool is_btrfs() {
    node::Kernel kernel;
    const UniqueFd fd(kernel.open(root().c_str(), O_RDONLY | O_DIRECTORY));
    return *node::is_btrfs(kernel, fd.get());
  }
  /// Where limits are those of projects, which any directory can be given.
  static bool has_projects() { return has_limits() && !is_btrfs(); }
  /// Where they are those of subvolumes.
  static bool has_subvolumes() { return has_limits() && is_btrfs(); }
  /// What a test leaves would be in the way of the next one's projects.
  static void lift_all_limits() {
    node::Kernel kernel;
    const UniqueFd fd(kernel.open(root().c_str(), O_RDONLY | O_DIRECTORY));
    const auto quota = node::ProjectQuota::open(kernel, fd.get());
    if (!quota.ok()) return;
    const auto uses = quota->uses();
    if (!uses.ok()) return;
    for (const node::ProjectUse& use : *uses) {
      if (!node::ProjectQuota::is_own(use.project) || !use.limits.any()) continue;
      static_cast<void>(quota->limit(use.project, {}));
    }
  }
  /// For tests that are to run with limits where there are some.
  static node::Limits limits() {
    return has_limits() ? node::Limits{.bytes = 8U << 20U} : node::Limits{};
  }

 private:
  const struct Limits {
    ~Limits() { lift_all_limits(); }
  } limits_;  // goes after the folder
  const TempDir folder_{root()};
  const std::string& path_ = folder_.path();
};

/// Cases of the quota test bed: run.sh there fails for one that runs on none of its file systems.
struct NeedsLimits : Needs {
  NeedsLimits() : Needs(BaseFolder::has_limits(), "not here: limits, as test/quota has") {}
};
struct NeedsProjects : Needs {
  NeedsProjects() : Needs(BaseFolder::has_projects(), "not here: projects, as test/quota has") {}
};
struct NeedsSubvolumes : Needs {
  NeedsSubvolumes()
      : Needs(BaseFolder::has_subvolumes(), "not here: subvolumes, as test/quota has") {}
};
struct NeedsSetting : Needs {
  explicit NeedsSetting(const char* name)
      : Needs(setting(name).has_value(), "not here: file systems of test/quota") {}
};
/// Not for that bed.
struct NeedsNoLimits : Needs {
  NeedsNoLimits()
      : Needs(!BaseFolder::has_limits(), "not here: a file system without limits (test/quota)") {}
};

inline constexpr std::uint64_t kMiB = 1U << 20U;

/// Empty ones, called 0, 1, 2 ...
inline void make_files(const std::string& directory, int count) {
  const UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < count; ++i) {
    REQUIRE(::mknodat(folder.get(), std::to_string(i).c_str(), S_IFREG | 0644, 0) == 0);
  }
}

/// Fills a file until it is stopped; how much went in, and why no more.
struct Filled {
  std::uint64_t bytes = 0;
  int error = 0;
};

inline Filled fill(const std::string& path, std::uint64_t most) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) return {.error = errno};
  Filled filled;
  const std::string block(64U << 10U, 'x');
  while (filled.bytes < most) {
    const ssize_t written = ::write(file.get(), block.data(), block.size());
    if (written < 0) return {filled.bytes, errno};
    filled.bytes += static_cast<std::uint64_t>(written);
  }
  return filled;
}

/// Ends the process, or fails, at the n-th place: there is one before and one after each call.
class FaultyKernel : public node::Kernel {
 public:
  FaultyKernel(int at, int error) : at_(at), error_(error) {}
  int places() const { return place_; }

 protected:
  int before(const char* /*call*/) override {
    if (place_++ != at_) return 0;
    if (error_ == 0) ::_exit(kCrashed);
    return error_;
  }
  void after(const char* /*call*/) override {
    if (place_++ == at_ && error_ == 0) ::_exit(kCrashed);
  }

 public:
  static constexpr int kCrashed = 42;

 private:
  const int at_;
  const int error_;             // 0 = end the process
  std::atomic<int> place_ = 0;  // of all threads of an agent
};

/// The file system has no room for anything new. What is there can be opened to be written anew.
class FullKernel : public FaultyKernel {
 public:
  explicit FullKernel(int at = -1, int error = 0) : FaultyKernel(at, error) {}

 protected:
  int before(const char* call) override {
    const int error = FaultyKernel::before(call);
    if (error != 0) return error;
    const std::string_view name(call);
    return name == "write" || name == "mkdirat" ? ENOSPC : 0;
  }
};

/// So many processes at once, each of which does the work with its number; their exit codes, by
/// number.
inline std::vector<int> at_once(int processes, const std::function<int(int)>& work) {
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        ::_exit(work(process));
      } catch (const std::exception&) {
        ::_exit(99);
      }
    }
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    const bool ended = ::waitpid(child, &status, 0) == child && WIFEXITED(status);
    codes.push_back(ended ? WEXITSTATUS(status) : -1);
  }
  return codes;
}

/// Runs it in a process of its own; its exit code.
inline int in_process(const std::function<int()>& work) {
  return at_once(1, [&](int) { return work(); })[0];
}

inline node::MakeRequest make_request(const std::string& id, const std::string& path) {
  node::MakeRequest request{.id = id, .path = path, .claim = "web/data", .uid = "u-1"};
  request.access.mode = 02770;
  request.limits = BaseFolder::limits();
  return request;
}

}  // namespace lpp::testing
