// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"
#include "node/volumes.h"

namespace lpp::cli {

enum class NodeAction { kMake, kAdopt, kRemove, kResize, kUsage, kList, kRecover };

/// What `node` was asked for: by a person, or by a helper pod in the words of its scripts.
struct NodeRequest {
  NodeAction action = NodeAction::kList;
  std::string base{};  // absolute
  std::string path{};  // of the volume, from the base folder; "" where none is needed
  std::string id{};
  std::string claim{};
  std::string uid{};
  std::optional<std::string> cluster{};
  /// Where alone it may be made or taken back (several, with blanks), or changed; "" = anywhere.
  std::string disk{};
  node::Access access{};
  bool limited = false;   // quota: hard
  node::Limits limits{};  // bytes: the volume's size, limited or not
  node::Room room{};
  bool ordered = false;  // by the provisioner, through a helper pod
  bool take_back = false;
  bool if_empty = false;
  bool require_mount = false;
  bool json = false;
};

std::span<const FlagGroup> node_flags();

/// kInvalid says which flag or variable is wrong. Users and groups may be names of this machine.
Result<NodeRequest> read_node_request(const Given& given, const GetEnv& getenv);

}  // namespace lpp::cli
