// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/file_text.h"
#include "harness/temp_dir.h"
#include "manifest_file.h"
#include "script_run.h"

/// The manifest's scripts in a folder of their own, for tests of them.
namespace lpp::testing {

/// A base folder as kubelet would make it, and the scripts under one shell.
class Scripts {
 public:
  explicit Scripts(std::vector<std::string> shell) : shell_(std::move(shell)) {
    std::filesystem::create_directory(base());
    std::filesystem::permissions(base(), std::filesystem::perms(0755));
    const ManifestFile manifest;
    for (const std::string name : {"setup", "teardown"}) {
      std::string text = manifest.data(name);
      const std::string message = "/dev/termination-log";
      for (std::size_t at = 0; (at = text.find(message, at)) != std::string::npos;) {
        text.replace(at, message.size(), this->message());
      }
      std::ofstream(root_ / name) << text;
    }
  }
  std::filesystem::path base() const { return root_ / "base"; }
  /// What stands for the container's termination message; a runtime makes it.
  std::filesystem::path message() const { return root_ / "message"; }
  /// What the helper pod of a volume below folders of a path pattern gets besides: the base folder,
  /// mounted a second time.
  Environment way_to(const std::filesystem::path& dir) const {
    return {{"VOL_BASE_DIR", base().string()},
            {"VOL_SUB_DIR", dir.lexically_relative(base()).string()}};
  }

  /// Right behind its `set -eu`.
  void begin_teardown_with(const std::string& lines) const {
    std::string text = text_of(root_ / "teardown");
    const std::string start = "set -eu\n";
    text.insert(text.find(start) + start.size(), lines);
    std::ofstream(root_ / "teardown") << text;
  }

  Run setup(const std::string& dir, const Environment& more = {}) const {
    return script("setup", dir, "create", more);
  }
  Run teardown(const std::string& dir, const Environment& more = {}) const {
    return script("teardown", dir, "delete", more);
  }

 private:
  Run script(const std::string& name, const std::string& dir, const std::string& action,
             const Environment& more) const {
    auto command = shell_;
    command.insert(command.end(), {(root_ / name).string(), "-p", dir, "-s", "1073741824", "-m",
                                   "Filesystem", "-a", action});
    Environment environment = {
        {"VOL_DIR", dir}, {"VOL_MODE", "Filesystem"}, {"VOL_SIZE_BYTES", "1073741824"},
        {"VOL_USER", ""}, {"VOL_GROUP", ""},          {"VOL_PERM", ""}};
    for (const auto& given : more) {
      std::erase_if(environment, [&](const auto& entry) { return entry.first == given.first; });
      environment.push_back(given);
    }
    return run(command, environment);
  }

  std::vector<std::string> shell_;
  const TempDir folder_;
  const std::filesystem::path root_ = std::filesystem::canonical(folder_.path());
};

#define FOR_EACH_SHELL(scripts)      \
  for (const auto& shell : shells()) \
    for (bool once = true; once;)    \
      for (const Scripts scripts(shell); once; once = false)

}  // namespace lpp::testing
