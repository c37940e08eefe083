// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "operation/usage.h"

// What agents say of single directories, see protocol.h.

namespace lpp::agent {

inline constexpr std::size_t kMaxPath = 1024;  // bytes of the path of a directory

/// What a volume with a limit takes up.
struct Use {
  std::string path{};                       // of its directory
  std::optional<operation::Usage> usage{};  // nullopt: it is not measured any more
  bool operator==(const Use&) const = default;
};

/// A directory in a base path: of a volume on record, of a make or removal that has not ended, or
/// one of which there is no record.
struct Listed {
  enum class State { kMaking, kPresent, kRemoving };
  std::string path{};   // absolute
  std::string id{};     // of the volume, as the records have it; "" = there is no record
  std::string claim{};  // "namespace/name", for people; may be empty
  std::string uid{};    // the claim's; may be empty
  std::int64_t size = 0;
  std::optional<std::int64_t> used{};  // bytes; nullopt: nobody counts
  std::int64_t limit = 0;              // bytes that record and disk hold it to now; 0 = to none
  State state = State::kPresent;
  std::int64_t since = 0;  // seconds since 1970: the last change of the record or the directory
  std::string cluster{};   // whose records they are, if it is another one
  bool operator==(const Listed&) const = default;
};

/// The base path of what a make or a removal has left among the records, and no record tells of;
/// "" = the directory is none of these.
std::string base_of_leftover(const Listed& listed);

/// Part of all that is in a node's base paths. The first part begins anew.
struct InventoryPart {
  bool first = false;
  bool last = false;
  std::vector<Listed> directories{};
  std::int64_t left_out = 0;  // of the last part: there are so many more, at least
};

nlohmann::json to_json(const Use& use);
nlohmann::json to_json(const Listed& listed);
nlohmann::json to_json(const InventoryPart& part);

/// kInvalid names the member.
Result<Use> read_use(const nlohmann::json& object);
Result<Listed> read_listed(const nlohmann::json& object);
/// Without the directories that cannot be read: why not is added to `unread`.
Result<InventoryPart> read_inventory(const nlohmann::json& object,
                                     std::vector<std::string>& unread);

}  // namespace lpp::agent
