// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "operation/executor.h"
#include "operation/node_load.h"
#include "operation/owner_slot.h"
#include "operation/path_ledger.h"

namespace lpp::testing {

/// Does operations in folders that stand for the nodes' disks, in this process: as simple as an
/// executor can be. Its durable record is one small file per operation, written before anything is
/// done. It works between begin() and end(), and what is on record at the beginning is gone on
/// with. Thread-safe; everything passed in must outlive it.
class DirectoryExecutor final : public operation::Executor {
 public:
  using Operation = operation::Operation;

  struct Settings {
    std::string disks{};                 // "<disks>/<node>" is what is "/" on the node
    std::string records{};               // the folder of the records, made if missing
    std::size_t most_per_node = 0;       // at work at once; 0 = no limit
    std::chrono::seconds patience{120};  // then something that should be over is late
  };

  /// Trouble on the nodes, read from a file among the records, so that a test can make it for
  /// another process. Kinds are those of to_string(Kind).
  struct Faults {
    std::map<std::string, std::string> fail{};  // kind: what is said, instead of any work
    std::map<std::string, std::string> hold{};  // kind: hangs "before" or "after" the work
    std::vector<std::string> silent{};          // nodes on which nothing begins or ends
  };
  static Result<void> set_faults(const std::string& records, const Faults& faults);

  DirectoryExecutor(Clock& clock, operation::PathLedger& ledger, Settings settings);
  ~DirectoryExecutor() override;

  void begin(operation::Owner owner) override;
  void end(Duration limit) override;
  std::vector<operation::Recorded> recorded(std::string_view volume_name) override;
  operation::Admission admit(const Operation& operation) override;
  Result<Start> start(const Operation& operation) override;
  Result<void> cancel(const operation::Id& id) override;
  Result<bool> forget(const operation::Id& id, When when) override;
  operation::Progress lost(const Operation& operation) const override;
  Result<bool> can_resize(const Operation& /*operation*/) override { return true; }
  void node_changed(std::string_view node) override;

 private:
  enum class Stage { kRecorded, kBegun, kSucceeded, kFailed };
  struct Entry {
    std::shared_ptr<const Operation> operation{};
    TimePoint since{};
    // On file.
    Stage stage = Stage::kRecorded;
    bool cancelled = false;
    operation::Directory directory = operation::Directory::kUnknown;
    std::string message{};
    // In this process only.
    bool was_begun = false;  // by one that has ended: what it did is not known
    std::optional<Result<operation::Directory>> outcome{};

    bool over() const { return stage == Stage::kSucceeded || stage == Stage::kFailed; }
  };
  using Entries = std::map<std::string, Entry>;  // by name of the file
  using Woken = std::vector<std::shared_ptr<const Operation>>;

  std::string file_of(const std::string& name) const { return settings_.records + "/" + name; }
  void load() LPP_REQUIRES(mutex_);
  Result<void> save(const Entries::value_type& item) const;
  void add(const std::string& name, Entry entry) LPP_REQUIRES(mutex_);
  void drop(Entries::iterator it, Woken& woken) LPP_REQUIRES(mutex_);
  Entries::iterator find(const operation::Id& id) LPP_REQUIRES(mutex_);
  operation::Progress progress_of(const Entry& entry) const;
  void work(const std::stop_token& stop);
  /// One thing that can be done now; false when there is none.
  bool step(const Faults& faults, Woken& woken) LPP_REQUIRES(mutex_);
  bool step(Entries::iterator it, const Faults& faults, Woken& woken) LPP_REQUIRES(mutex_);
  void finish(Entry& entry) const;
  void wake(const Woken& operations);

  Clock& clock_;
  operation::PathLedger& ledger_;
  const Settings settings_;
  operation::OwnerSlot owner_;
  Mutex mutex_;
  CondVar changed_;
  Entries entries_ LPP_GUARDED_BY(mutex_);
  operation::NodeLoad load_;
  std::jthread worker_;
};

}  // namespace lpp::testing
