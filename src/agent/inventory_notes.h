// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/clock.h"
#include "node/volumes.h"

namespace lpp::agent {

/// What lies in an agent's base paths, and what of that the controller has heard. It is told as a
/// whole, in parts: at the beginning of a session, every ten minutes, and when it has changed if it
/// is short. How much a volume takes up is no change. Bounded. One thread at a time.
class InventoryNotes {
 public:
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::size_t kMostBare = 2000;  // of each base path
  static constexpr std::size_t kFew = 200;        // are told at each change
  static constexpr std::chrono::minutes kTellAgain{10};

  struct Seen {
    std::vector<Listed> directories{};
    std::int64_t left_out = 0;
    /// What may be swept: a make or removal that has not ended and that no agent has on record, in
    /// a folder of this very cluster.
    struct Leftover {
      std::string base_path{};
      std::string disk{};  // that it was seen on
      Listed listed{};
      bool lost = false;  // a record alone
    };
    std::vector<Leftover> leftovers{};
  };

  struct Place {
    std::string path{};  // of the base
    std::string disk{};
    std::string foreign{};  // the cluster whose records they are, if it is another one
    bool own = false;       // it is known to be ours
  };
  /// Adds what there is in a base path.
  static void add(const Place& place, const node::BaseUsage& usage,
                  const node::Inventory& inventory, Seen& to);

  /// That is all there is now.
  void saw(Seen seen, TimePoint now);
  /// The controller knows nothing.
  void tell_anew();

  bool any_news() const { return telling_.has_value(); }
  /// One directory at least, if there is any; then as many as fit into so many bytes.
  std::optional<InventoryPart> news(std::size_t most_bytes) const;
  /// The controller has heard that.
  void told(const InventoryPart& part, TimePoint now);

 private:
  bool differs() const;

  Seen seen_{};
  bool known_ = false;          // there was a look
  std::vector<Listed> told_{};  // the last time, if they were few
  bool told_few_ = false;
  std::optional<TimePoint> told_at_{};  // in this session
  struct Telling {
    std::vector<Listed> directories{};
    std::int64_t left_out = 0;
    std::size_t done = 0;
  };
  std::optional<Telling> telling_{};
};

}  // namespace lpp::agent
