#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/strings.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/node/sandbox.h"
#include "devcluster/runtime/wait.h"

/// Helpers for the tests of the nodes and controllers.
namespace lpp::devcluster::testing {

/// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / ("lpp-test-" + random_uuid())).string()) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The machine's sandbox tools, or the reason why there are none.
inline const Result<SandboxTools>& sandbox_tools() {
  static const Result<SandboxTools> tools = find_sandbox_tools();
  return tools;
}

constexpr std::chrono::seconds kDeadline{20};

/// Waits with a deadline that only a failing test reaches.
inline bool wait_for(const Registry& registry, const ObjectRef& ref,
                     const std::function<bool(const nlohmann::json*)>& condition) {
  return devcluster::wait_for(registry, ref, condition, kDeadline);
}

}  // namespace lpp::devcluster::testing

/// Skips the rest of a test case when the machine cannot make sandboxes; says why.
#define LPP_NEEDS_SANDBOX()                                                          \
  if (!lpp::devcluster::testing::sandbox_tools().ok()) {                             \
    MESSAGE("skipped: ", lpp::devcluster::testing::sandbox_tools().error().message); \
    return;                                                                          \
  }
