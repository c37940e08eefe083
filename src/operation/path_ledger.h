// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/path_index.h"
#include "base/sync.h"
#include "operation/operation.h"

namespace lpp::operation {

/// Who is in the way of an operation.
struct Holder {
  std::string volume_name{};
  std::string path{};
  bool is_volume = false;  // else what makes or removes it
};

/// What the ledger has to know of the cluster. Thread-safe; must not call the ledger.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  /// Another volume whose directory is, contains or lies inside the operation's, on a node that may
  /// be the same.
  virtual std::optional<Holder> volume_in_the_way(const Operation& operation) const = 0;
  /// Whether two node names may stand for one machine: they are equal, or one of them is not known.
  virtual bool may_be_one_node(std::string_view a, std::string_view b) const = 0;
};

/// The one place that knows who holds or will hold which directory: live volumes, operations on
/// record, and what this process has decided but nothing shows yet. Thread-safe.
class PathLedger {
 public:
  explicit PathLedger(const Surroundings& surroundings) : surroundings_(surroundings) {}

  /// Decides for the operation: nothing when it has its directory now, until release(); else who is
  /// in the way. Operations of one volume are never in each other's way.
  std::optional<Holder> take(const Operation& operation);
  /// The decision is on record, shown by a volume, or void.
  void release(const Operation& operation);
  /// All decisions for the volume; all that there are.
  void release(std::string_view volume_name);
  void release_all();

  /// An executor has it on record, or has not any more.
  void add(const std::shared_ptr<const Operation>& operation);
  void remove(const std::shared_ptr<const Operation>& operation);

  /// What is on record or decided to be made on the node, below the base path: each volume once.
  std::vector<std::shared_ptr<const Operation>> makes_below(std::string_view node,
                                                            std::string_view base_path) const;

  /// Decisions, for tests.
  std::size_t decisions() const;

 private:
  using Item = std::shared_ptr<const Operation>;

  const Surroundings& surroundings_;
  mutable Mutex mutex_;
  PathIndex<Operation> recorded_ LPP_GUARDED_BY(mutex_);
  PathIndex<Operation> decided_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::vector<Item>> by_volume_ LPP_GUARDED_BY(mutex_);  // decided
};

}  // namespace lpp::operation
