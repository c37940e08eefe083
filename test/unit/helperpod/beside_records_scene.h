// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "harness/must.h"
#include "node/kernel.h"
#include "node/volumes.h"
#include "own_script.h"
#include "unit/app/script_scene.h"

/// Helper pods where src/node has kept records, for tests of our scripts.
namespace lpp::helperpod::beside_records {

namespace fs = std::filesystem;
using operation::Operation;
using testing::Run;

/// A base path with the volume of claim "uid-1", and what removes it.
class Base : public testing::Scripts {
 public:
  explicit Base(const std::vector<std::string>& shell) : Scripts(shell), shell_(shell) {}

  Operation removal(const std::string& way) const {
    return {.kind = operation::Kind::kRemove,
            .volume_name = "pvc-1",
            .owner_uid = "uid-of-volume",
            .claim_uid = "uid-1",
            .node = "n1",
            .base_path = base(),
            .path = base() / way,
            .volume_mode = "Filesystem",
            .disk = LPP_MUST(volumes().identity())};
  }
  Operation making(const std::string& way, const std::string& owner = "uid-of-volume") const {
    Operation make = removal(way);
    make.kind = operation::Kind::kMake;
    make.owner_uid = owner;
    return make;
  }
  /// By an agent, with twenty folders of files.
  void make(const std::string& way, const std::string& uid = "uid-1") const {
    LPP_MUST(volumes().make({.id = node::id_of_path(way), .path = way, .uid = uid}));
    for (int folder = 0; folder < 20; ++folder) {
      const fs::path inside = base() / way / std::to_string(folder);
      fs::create_directory(inside);
      for (int file = 0; file < 20; ++file) std::ofstream(inside / std::to_string(file)) << "x";
    }
  }
  /// By an agent that ends right then.
  void begin_to_remove(const std::string& way, const std::string& uid = "uid-1") const {
    std::stop_source stop;
    node::RemoveRequest request{.id = node::id_of_path(way), .path = way, .uid = uid};
    request.stop = stop.get_token();
    request.may_begin = [&] {
      stop.request_stop();
      return true;
    };
    REQUIRE_FALSE(volumes().remove(request).ok());
    REQUIRE_FALSE(fs::exists(base() / way));
    REQUIRE(fs::exists(gone(way)));
  }
  fs::path gone(const std::string& way) const {
    return base() / node::kRecordFolder / ("gone." + node::id_of_path(way));
  }
  Run helper_pod(const Operation& operation, bool beside_agents = false) const {
    return run_own_script(operation, {.config_map = "c", .beside_agents = beside_agents}, shell_,
                          {{"/script/teardown", (base().parent_path() / "teardown").string()}},
                          kEmptyTemplate, first_);
  }
  /// The same where every directory looks like the root of a btrfs subvolume: a script sees the
  /// inode number 256 of all of them.
  Run helper_pod_on_btrfs(const Operation& operation) const {
    const fs::path ls = base().parent_path() / "ls";
    std::ofstream(ls) << "#!/bin/sh\n[ \"$1\" = -di ] && [ -e \"$3\" ] && echo \"256 $3\"\n";
    fs::permissions(ls, fs::perms(0755));
    return run_own_script(operation, {.config_map = "c"}, shell_,
                          {{"/script/teardown", (base().parent_path() / "teardown").string()},
                           {"ls -di", ls.string() + " -di"}});
  }
  Run take_back(const Operation& undo) const {
    if (!undo.only_if_empty) return helper_pod(undo);
    return run_own_script(undo, {.config_map = "c"}, shell_,
                          {{"/dev/termination-log", (base().parent_path() / "said").string()}},
                          kEmptyTemplate, first_);
  }
  Run set_up(const Operation& make, const std::string& cluster, const fs::path& said,
             const char* from_template = kEmptyTemplate) const {
    return run_own_script(make, {.config_map = "c", .cluster = cluster}, shell_,
                          {{"/script/setup", (base().parent_path() / "setup").string()},
                           {"/dev/termination-log", said.string()}},
                          from_template, first_);
  }
  /// A setup of somebody else's in the place of the manifest's.
  void own_setup(const std::string& text) const {
    std::ofstream(base().parent_path() / "setup") << text;
  }
  fs::path record(const std::string& way) const {
    return base() / node::kRecordFolder / ("volume." + node::id_of_path(way) + ".json");
  }
  fs::path identity_file() const { return base() / node::kRecordFolder / "identity.json"; }
  /// From all scripts of ours from now on.
  void hide(const fs::path& path) const { first_ = unseen(path); }
  node::Volumes volumes() const { return LPP_MUST(node::Volumes::open(kernel_, base(), {})); }

 private:
  const std::vector<std::string> shell_;
  mutable node::Kernel kernel_;
  mutable std::string first_{};
};

#define FOR_EACH_BASE(scene)                  \
  for (const auto& shell : testing::shells()) \
    for (bool once = true; once;)             \
      for (const Base scene(shell); once; once = false)

}  // namespace lpp::helperpod::beside_records
