// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/protocol.h"
#include "base/unique_fd.h"
#include "harness/directory_executor.h"
#include "integration/support/story_steps.h"
#include "operation/operation.h"

namespace lpp::testing {

/// Trouble with the work on the nodes, made in whichever way the story's executor meets it, and a
/// look at what is on record. One thread.
class Trouble {
 public:
  using Kind = operation::Kind;
  enum class Moment { kBefore, kAfter };

  explicit Trouble(StoryBed& story) : story_(story) {
    if (story.by != By::kHelperPods) return;
    const auto map = LPP_MUST(story.admin().get(k8s::kConfigMaps, kScripts));
    for (const char* script : {"setup", "teardown"}) good_[script] = map["data"][script];
  }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;

  /// The work fails before it has begun, and says this. An agent says what it always says when
  /// somebody else holds the locks of all volumes.
  std::string fail(Kind kind, const std::string& said) {
    if (story_.by == By::kAgents) {
      lock_volumes();
      return "another process is working at this volume";
    }
    fail_with(kind, said);
    return said;
  }
  void fail_with(Kind kind, const std::string& said) {
    faults_.fail[std::string(to_string(kind))] = said;
    if (tell()) return;
    change_script(story_, script_of(kind), "echo '" + said + "' >&2; exit 7");
  }
  /// The work hangs.
  void hold(Kind kind, Moment moment) {
    const bool before = moment == Moment::kBefore;
    faults_.hold[std::string(to_string(kind))] = before ? "before" : "after";
    if (tell()) return;
    for (const auto& file : hold_files()) {
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file).close();
    }
    const std::string script = script_of(kind);
    const std::string wait =
        "while [ -e \"${VOL_BASE_DIR:-${VOL_DIR%/*}}/.hold\" ]; do sleep 0.1; done";
    if (before) change_script(story_, script, wait);
    if (!before) restore_script(story_, script, good_[script] + "\n" + wait + "\n");
  }
  /// Nothing begins or ends on the node.
  void silence(const std::string& node) {
    faults_.silent.push_back(node);
    if (!tell()) story_.bed->cluster().nodes().set_faults(node, {.dead = true});
  }
  void end() {
    const auto silent = std::exchange(faults_, {}).silent;
    locks_.clear();
    if (story_.by == By::kAgents || tell()) return;
    for (const auto& node : silent) story_.bed->cluster().nodes().set_faults(node, {});
    for (const auto& file : hold_files()) std::filesystem::remove(file);
    for (const auto& [script, text] : good_) restore_script(story_, script, text);
  }

  /// What is on record: "make waiting", "remove running", "make over", "remove ending" (cancelled)
  /// … one for each.
  std::vector<std::string> recorded() {
    if (story_.by == By::kAgents) return recorded_on_disks();
    return story_.by == By::kDirectories ? recorded_in_files() : recorded_in_pods();
  }
  void wait_recorded(const std::string& what) {
    wait_for(story_, what, [&]() -> std::string {
      const auto all = recorded();
      return std::find(all.begin(), all.end(), what) == all.end() ? "it is not on record" : "";
    });
  }
  void wait_no_record() {
    wait_for(story_, "nothing is on record", [&]() -> std::string {
      const auto all = recorded();
      return all.empty() ? "" : all.front() + " is on record";
    });
  }
  /// Volumes and directories fit together, and nothing is on record.
  void wait_clean() {
    wait_no_record();
    LPP_MUST(story_.audit.wait_clean());
  }
  /// No volume, no directory and no record is there.
  void wait_empty() {
    wait_no_record();  // what is on record may make one
    LPP_MUST(story_.audit.wait_empty());
    wait_no_record();
  }

 private:
  inline static const k8s::ObjectKey kScripts{kDaemonNamespace, "local-path-config"};

  static std::string script_of(Kind kind) { return kind == Kind::kMake ? "setup" : "teardown"; }

  /// False when it is to be made with helper pods.
  bool tell() {
    if (story_.by == By::kHelperPods) return false;
    LPP_MUST(DirectoryExecutor::set_faults(story_.records(), faults_));
    return true;
  }
  std::vector<std::filesystem::path> hold_files() {
    std::vector<std::filesystem::path> files;
    for (const auto& node : story_.bed->nodes()) {
      for (const auto& base : story_.bed->base_paths()) {
        files.emplace_back(story_.bed->on_disk(node, base) + "/.hold");
      }
    }
    return files;
  }
  std::vector<std::string> record_folders() const {
    std::vector<std::string> folders;
    for (const auto& node : story_.bed->nodes()) {
      for (const auto& base : story_.bed->base_paths()) {
        folders.push_back(story_.bed->on_disk(node, base) + "/.local-path-provisioner");
      }
    }
    return folders;
  }
  void lock_volumes() {
    for (const auto& records : record_folders()) {
      std::filesystem::create_directories(records);
      UniqueFd file(::open((records + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      REQUIRE(file.valid());
      struct flock all {};  // but the first byte, which is no volume's
      all.l_type = F_WRLCK;
      all.l_whence = SEEK_SET;
      all.l_start = 1;
      REQUIRE(::fcntl(file.get(), F_OFD_SETLK, &all) == 0);
      locks_.push_back(std::move(file));
    }
  }
  std::vector<std::string> recorded_on_disks() const {
    std::vector<std::string> all;
    for (const auto& records : record_folders()) {
      std::error_code none;
      for (const auto& file : std::filesystem::directory_iterator(records, none)) {
        if (!file.path().filename().string().starts_with("work.")) continue;
        const auto work = agent::decode_work(text_of(file.path()));
        if (!work.ok()) continue;  // it is being written
        all.push_back(work->operation.kind == Kind::kMake ? "make" : "remove");
        all.back() += work->progress.over() ? " over" : " running";
      }
    }
    return all;
  }
  std::vector<std::string> recorded_in_files() {
    std::vector<std::string> all;
    for (const auto& file : std::filesystem::directory_iterator(story_.records())) {
      const auto record = nlohmann::json::parse(text_of(file.path()), nullptr, false);
      if (file.path().extension() != ".json" || !record.is_object()) continue;
      const std::string action = record["operation"]["action"];
      all.push_back(action == "create" ? "make" : "remove");
      const auto& stage = record["stage"];
      all.back() += record["cancelled"] == true ? " ending"
                    : stage == 0                ? " waiting"
                    : stage == 1                ? " running"
                                                : " over";
    }
    return all;
  }
  std::vector<std::string> recorded_in_pods() {
    std::vector<std::string> all;
    for (const auto& pod : LPP_MUST(story_.admin().list(k8s::kPods, kDaemonNamespace))) {
      const auto& labels = pod["metadata"]["labels"];
      const std::string phase = pod["status"].value("phase", "");
      all.push_back(labels["local.path.provisioner/action"] == "create" ? "make" : "remove");
      all.back() += pod["metadata"].contains("deletionTimestamp") ? " ending"
                    : phase == "Pending"                          ? " waiting"
                    : phase == "Running"                          ? " running"
                                                                  : " over";
    }
    return all;
  }

  StoryBed& story_;
  DirectoryExecutor::Faults faults_;
  std::vector<UniqueFd> locks_;
  std::map<std::string, std::string> good_;
};

}  // namespace lpp::testing
