#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "node/volumes.h"

namespace lpp::testing {

/// A base folder of a test, in the folder that LPP_NODE_TEST_DIR names: the quota test bed puts a
/// file system with limits there. Else in memory, where fsync costs nothing.
class BaseFolder {
 public:
  BaseFolder() : path_(root() + "/node-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder for a test");
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~BaseFolder() {
    std::filesystem::remove_all(path_);
    lift_all_limits();
  }
  BaseFolder(const BaseFolder&) = delete;
  BaseFolder& operator=(const BaseFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  bool has(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(at(name)));
  }
  void write(const std::string& name, const std::string& text = "data") const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name)) << text;
  }

  /// Everything in it but the lock, from it, without the records' folder itself.
  std::set<std::string> content() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_);
      if (name != node::kRecordFolder && name != record("lock")) names.insert(name);
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
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread of a test changes the environment
    const char* const named = std::getenv("LPP_NODE_TEST_DIR");
    if (named != nullptr) return named;
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                           : std::filesystem::temp_directory_path().string();
  }
  static bool has_limits() {
    node::Kernel kernel;
    const UniqueFd fd(kernel.open(root().c_str(), O_RDONLY | O_DIRECTORY));
    return node::ProjectQuota::open(kernel, fd.get()).ok();
  }
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
  std::string path_;
};

/// Ends the process, or fails, at the n-th place: there is one before and one after each call.
class FaultyKernel final : public node::Kernel {
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
  const int error_;  // 0 = end the process
  int place_ = 0;
};

/// Runs it in a process of its own; its exit code.
inline int in_process(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      ::_exit(work());
    } catch (const std::exception&) {
      ::_exit(99);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline node::MakeRequest make_request(const std::string& id, const std::string& path) {
  node::MakeRequest request{.id = id, .path = path, .claim = "web/data", .uid = "u-1"};
  request.access.mode = 02770;
  request.limits = BaseFolder::limits();
  return request;
}

}  // namespace lpp::testing
