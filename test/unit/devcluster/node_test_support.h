#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "base/strings.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/node/sandbox.h"

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

/// Waits until the object satisfies the condition (null: it does not exist); false after the
/// deadline. Woken by the registry's changes, not by polling.
inline bool wait_for(const Registry& registry, const ObjectRef& ref,
                     const std::function<bool(const nlohmann::json*)>& condition,
                     std::chrono::milliseconds deadline = kDeadline) {
  const SystemClock clock;
  const TimePoint end = clock.now() + deadline;
  auto watch = registry.watch({.resources = {ref.resource}});
  if (!watch.ok()) return false;
  for (;;) {
    const ObjectPtr object = registry.find(ref.resource, ref.ns, ref.name);
    if (condition(object.get())) return true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock.now());
    if (left.count() <= 0) return false;
    (void)watch.watch->next(left);
  }
}

}  // namespace lpp::devcluster::testing

/// Skips the rest of a test case when the machine cannot make sandboxes; says why.
#define LPP_NEEDS_SANDBOX()                                                          \
  if (!lpp::devcluster::testing::sandbox_tools().ok()) {                             \
    MESSAGE("skipped: ", lpp::devcluster::testing::sandbox_tools().error().message); \
    return;                                                                          \
  }
