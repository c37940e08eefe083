// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "config/config.h"
#include "k8s/objects.h"
#include "operation/space.h"

// The free space that the scheduler is told of: a CSIStorageCapacity object for each node and class
// of the served name with capacity. What is wanted is computed here from plain values;
// capacity_publisher.h writes it. All of it is pure.

namespace lpp::provisioner {

/// Published for a path of which nothing is known: more than anybody asks for, so that the
/// scheduler may choose the node. Only trying tells; a node that turns out to be full refuses, and
/// tells its space with that. 1Ei.
inline constexpr std::int64_t kUnknownRoom = 1LL << 60U;

/// What was told of a path counts so long: nothing that was told once keeps a node out for ever.
/// And so long what an earlier process has published stays where this one knows nothing.
inline constexpr std::chrono::minutes kToldCounts{10};

/// On each object of ours: the provisioner's name. By it they are found again.
inline constexpr std::string_view kCapacityLabel = "local.path.provisioner/capacity-of";

/// The largest volume that one base path of a node can take, for one class.
struct Capacity {
  std::string storage_class{};
  std::string hostname{};  // label of the node; "" = every node (shared filesystem)
  std::int64_t bytes = 0;
  bool known = true;   // false: nothing is known of the path that decides
  std::string node{};  // "" = every node

  /// Of its object, the same in every process.
  std::string object_name(std::string_view provisioner) const;
};

/// What is known of a base path of a node.
struct PathRoom {
  operation::Space space{};
  std::int64_t promised = 0;                      // the sizes of the volumes on its file system
  std::optional<operation::Promises> promises{};  // the same as the node tells it
};

struct CapacityScene {
  using Place = std::pair<std::string, std::string>;  // node, base path
  std::string provisioner{};
  std::vector<std::shared_ptr<const k8s::StorageClass>> classes{};  // others are left out
  std::vector<std::shared_ptr<const k8s::Node>> nodes{};
  std::shared_ptr<const config::Config> config{};
  std::map<Place, PathRoom> rooms{};  // only of what was told lately
  std::set<Place> unfit{};            // nothing can be made there now, see Executor::why_unfit()
};

/// Where a volume of these classes may be made.
std::set<CapacityScene::Place> places_of(const CapacityScene& scene);

/// What can be made there for the class: the free bytes, less `reserve` of the class; and with
/// overcommit false, less what volumes were promised and do not use yet. Never below 0. The node
/// itself has the last word: it may find less, because it knows what has changed since.
std::int64_t room_for(const k8s::StorageClass& storage_class, const PathRoom& room);

/// Every object that there should be. None for a node where the configuration has no path for the
/// class: no claim can be served there. What else is wrong with a class is not a matter of space,
/// and is said in an Event once a claim comes to us: such a class has room everywhere.
std::vector<Capacity> wanted_capacities(const CapacityScene& scene);

/// Whether the change is worth a write: by 1 % of what stands there, or more.
bool is_worth_writing(std::int64_t published, std::int64_t wanted);

/// The CSIStorageCapacity, and the part of it that may change.
nlohmann::json capacity_object(const Capacity& capacity, std::string_view provisioner,
                               std::string_view ns);
nlohmann::json capacity_patch(std::int64_t bytes);

/// The CSIDriver that makes the scheduler look for them. There is no CSI driver behind it.
nlohmann::json driver_object(std::string_view provisioner);

/// Follows the board, which knows no time: what of it was told lately. One thread.
class FreshSpace {
 public:
  using Place = CapacityScene::Place;
  /// What was told within kToldCounts before `now`, as far as calls of this noticed.
  std::map<Place, operation::Space> look(const operation::SpaceBoard& board, TimePoint now);

 private:
  struct Heard {
    std::uint64_t told = 0;
    TimePoint at{};
  };
  std::map<Place, Heard> heard_{};
};

}  // namespace lpp::provisioner
