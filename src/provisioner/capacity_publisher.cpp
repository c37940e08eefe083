// SPDX-License-Identifier: Apache-2.0
#include "provisioner/capacity_publisher.h"
#include "provisioner/base_paths.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"
#include "k8s/json_access.h"
#include "k8s/quantity.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/volume_node.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using k8s::member, k8s::text;
using nlohmann::json;

namespace {

constexpr int kPage = 500;
/// Of one look; then it ends.
constexpr int kMostFailures = 3;

std::int64_t bytes_of(const json& object) {
  const auto capacity = k8s::Quantity::parse(text(object, "capacity"));
  const auto largest = k8s::Quantity::parse(text(object, "maximumVolumeSize"));
  const bool agree = capacity.ok() && largest.ok() && capacity->value() == largest->value();
  return agree ? capacity->value() : -1;
}

/// The rule of a Role or ClusterRole, as people write it.
std::string rule(const k8s::Resource& resource) {
  return fmt::format("{{apiGroups: [storage.k8s.io], resources: [{}], verbs: [{}]}}",
                     resource.plural,
                     resource.namespaced ? "list, create, patch, delete" : "get, create, patch");
}

bool needs_promised(const CapacityScene& scene) {
  return std::any_of(scene.classes.begin(), scene.classes.end(), [&](const auto& one) {
    const auto limits = limits_of(*one);
    return one->provisioner == scene.provisioner &&
           std::holds_alternative<operation::Limits>(limits) &&
           !std::get<operation::Limits>(limits).overcommit;
  });
}

/// The node that a volume's directory is on; "" = it may be any. What counts here is an estimate:
/// the annotation of a node that is there need not be compared with the affinity.
std::string node_for_sum(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes) {
  const std::string* const noted = k8s::find(volume.meta.annotations, kVolumeSelectedNode);
  if (noted != nullptr && nodes.get({"", *noted}) != nullptr) return *noted;
  const VolumeNode node = node_of(volume, nodes);
  return node.kind == VolumeNode::Kind::kNode ? node.name : std::string();
}

}  // namespace

CapacityPublisher::CapacityPublisher(World& world, std::string ns, IsServed is_served)
    : world_(world),
      provisioner_(world.names.with_capacity()),
      ns_(std::move(ns)),
      is_served_(std::move(is_served)) {}

CapacityPublisher::~CapacityPublisher() { stop(); }

void CapacityPublisher::start() {
  if (provisioner_.empty()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    set_thread_name("capacity");
    begin(stop);
    do {
      look(stop);
    } while (world_.clock.sleep_for(kPeriod, stop));
  });
}

void CapacityPublisher::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  stats_.objects = 0;
}

void CapacityPublisher::begin(const std::stop_token& stop) {
  auto options = world_.client.options();
  options.stop = stop;
  client_.emplace(world_.client.with(std::move(options)));
  began_ = world_.clock.now();
  listed_at_.reset();
  driver_stands_ = false;
  fresh_ = {};
  trouble_told_ = false;
}

bool CapacityPublisher::look(const std::stop_token& stop) {
  const TimePoint now = world_.clock.now();
  if (!listed_at_ || now - *listed_at_ >= kListAgain) {
    if (!list()) return false;
    listed_at_ = now;
    driver_stands_ = false;
  }
  const CapacityScene seen = scene();
  if (seen.config == nullptr) return false;
  std::set<std::string> names;
  bool all_known = true;
  int failures = 0;
  // Trouble is rarely one object's: the next look goes on.
  const auto go_on = [&](bool done) {
    failures += done ? 0 : 1;
    return failures < kMostFailures && world_.clock.sleep_for(kPace, stop);
  };
  for (const Capacity& wanted : wanted_capacities(seen)) {
    const std::string name = wanted.object_name(provisioner_);
    if (names.contains(name)) continue;  // two nodes with one label: the first one's
    const Served served = this->served(wanted, name, stop);
    if (served == Served::kNo) continue;
    names.insert(name);
    all_known = all_known && served == Served::kYes;
    if (served != Served::kYes || !is_due(wanted, name)) continue;
    if (!go_on(put(wanted, name))) return false;
  }
  std::vector<std::string> unwanted;
  for (const auto& [name, object] : objects_) {
    if (!names.contains(name)) unwanted.push_back(name);
  }
  for (const std::string& name : unwanted) {
    if (!go_on(remove(name))) return false;
  }
  stats_.objects = objects_.size();
  if (failures > 0 || !all_known) return false;
  if (!driver_stands_) driver_stands_ = ensure_driver();
  if (driver_stands_ && trouble_told_) log::info("free space is published again");
  if (driver_stands_) trouble_told_ = false;
  return driver_stands_;
}

bool CapacityPublisher::is_of_another(const Published& object, const Capacity& wanted) {
  return object.storage_class != wanted.storage_class || object.hostname != wanted.hostname;
}

bool CapacityPublisher::is_due(const Capacity& wanted, const std::string& name) const {
  const auto it = objects_.find(name);
  if (it == objects_.end() || it->second.bytes < 0 || is_of_another(it->second, wanted))
    return true;
  // What an earlier process knew is better than nothing, for a while.
  if (!wanted.known && world_.clock.now() - began_ < kToldCounts) return false;
  return is_worth_writing(it->second.bytes, wanted.bytes);
}

/// Trying tells what is not known. Where a claim would only wait for an agent it tells nothing, and
/// keeps the claim from nodes that can serve it; that agent tells by itself when it is back.
CapacityPublisher::Served CapacityPublisher::served(const Capacity& wanted, const std::string& name,
                                                    const std::stop_token& stop) const {
  if (wanted.known || wanted.node.empty() || !is_served_) return Served::kYes;
  const bool may_stay = objects_.contains(name) && world_.clock.now() - began_ < kToldCounts;
  return may_stay ? Served::kYes : is_served_(wanted.node, stop);
}

bool CapacityPublisher::list() {
  Objects objects;
  k8s::ListOptions options{.label_selector = fmt::format("{}={}", kCapacityLabel, provisioner_),
                           .limit = kPage};
  do {
    const auto page = client_->list(k8s::kCsiStorageCapacities, ns_, options);
    if (!page.ok()) return failed(page.error(), k8s::kCsiStorageCapacities, "list");
    for (const json& item : member(*page, "items")) {
      const json& labels = member(member(item, "nodeTopology"), "matchLabels");
      Published object{.storage_class = text(item, "storageClassName"),
                       .hostname = text(labels, kHostnameLabel),
                       .bytes = bytes_of(item)};
      objects[text(member(item, "metadata"), "name")] = std::move(object);
    }
    options.continue_token = text(member(*page, "metadata"), "continue");
  } while (!options.continue_token.empty());
  objects_ = std::move(objects);
  return true;
}

CapacityScene CapacityPublisher::scene() {
  CapacityScene scene{.provisioner = provisioner_,
                      .classes = world_.classes.list(),
                      .nodes = world_.nodes.list(),
                      .config = world_.config.current()};
  for (const auto& [place, space] : fresh_.look(world_.space, world_.clock.now())) {
    scene.rooms[place].space = space;
  }
  if (!scene.rooms.empty() && needs_promised(scene)) add_promised(scene);
  if (scene.config == nullptr) return scene;
  for (const auto& place : places_of(scene)) {
    const auto& [node, path] = place;
    if (!world_.executor.why_unfit(node, path).empty()) scene.unfit.insert(place);
  }
  return scene;
}

/// As promised_bytes() counts, for all paths at once.
void CapacityPublisher::add_promised(CapacityScene& scene) const {
  struct Sum {
    std::vector<std::string> base_paths{};  // of its file system
    double bytes = 0;
  };
  std::map<CapacityScene::Place, Sum> sums;
  for (const auto& [place, room] : scene.rooms) {
    sums[place].base_paths = world_.space.beside(place.first, place.second);
  }
  const auto add = [&](const std::string& node, const std::string& path, double size) {
    const auto first = node.empty() ? sums.begin() : sums.lower_bound({node, {}});
    for (auto it = first; it != sums.end(); ++it) {
      if (!node.empty() && it->first.first != node) break;
      if (below_any(path, it->second.base_paths)) it->second.bytes += size;
    }
  };
  for (const auto& volume : world_.volumes.list()) {
    const auto size = k8s::Quantity::parse(volume->capacity);
    if (!size.ok()) continue;
    add(node_for_sum(*volume, world_.nodes), volume->path, static_cast<double>(size->value()));
  }
  for (auto& [place, room] : scene.rooms) {
    const Sum& sum = sums[place];
    const auto made = being_made(world_.volumes, world_.ledger, place.first, sum.base_paths);
    room.promised =
        operation::add_sizes(counted(sum.bytes), operation::add_sizes(made.unused, made.unlimited));
    room.promises = world_.space.promises(place.first, sum.base_paths);
    if (room.promises) *room.promises += made;
  }
}

/// Creates the object, or changes what may change of it.
bool CapacityPublisher::put(const Capacity& wanted, const std::string& name) {
  const auto it = objects_.find(name);
  if (it == objects_.end()) return create(wanted, name);
  if (is_of_another(it->second, wanted)) {
    // Neither can be changed. Nobody but a person writes such an object under our name.
    return remove(name) && create(wanted, name);
  }
  const auto patched =
      client_->patch(k8s::kCsiStorageCapacities, {ns_, name}, k8s::PatchType::kMerge,
                     capacity_patch(wanted.bytes), {}, k8s::Answer::kIdentity);
  if (patched.ok()) {
    it->second.bytes = wanted.bytes;
    ++stats_.writes;
    return true;
  }
  if (patched.error().is(ErrorCode::kNotFound)) {
    objects_.erase(it);
    return create(wanted, name);
  }
  return failed(patched.error(), k8s::kCsiStorageCapacities, "patch");
}

bool CapacityPublisher::create(const Capacity& wanted, const std::string& name) {
  const auto created =
      client_->create(k8s::kCsiStorageCapacities, ns_, capacity_object(wanted, provisioner_, ns_),
                      k8s::Answer::kIdentity);
  if (!created.ok()) {
    // Ours if the answer to an earlier request was lost: the next look lists it.
    if (created.error().is(ErrorCode::kAlreadyExists)) listed_at_.reset();
    return failed(created.error(), k8s::kCsiStorageCapacities, "create");
  }
  ++stats_.writes;
  objects_[name] = {wanted.storage_class, wanted.hostname, wanted.bytes};
  return true;
}

bool CapacityPublisher::remove(const std::string& name) {
  const auto removed = client_->remove(k8s::kCsiStorageCapacities, {ns_, name});
  if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) {
    return failed(removed.error(), k8s::kCsiStorageCapacities, "delete");
  }
  if (removed.ok()) ++stats_.writes;
  objects_.erase(name);
  return true;
}

/// There may be one that a person wrote, with other fields that cannot be changed: what counts is
/// that the scheduler looks for the capacities.
bool CapacityPublisher::ensure_driver() {
  const auto found = client_->get(k8s::kCsiDrivers, {"", provisioner_});
  if (found.ok()) {
    const json& wanted = member(member(*found, "spec"), "storageCapacity");
    if (wanted.is_boolean() && wanted.get<bool>()) return true;
    json patch;
    patch["spec"]["storageCapacity"] = true;
    const auto patched = client_->patch(k8s::kCsiDrivers, {"", provisioner_},
                                        k8s::PatchType::kMerge, patch, {}, k8s::Answer::kIdentity);
    if (!patched.ok()) return failed(patched.error(), k8s::kCsiDrivers, "patch");
  } else if (found.error().is(ErrorCode::kNotFound)) {
    const auto created =
        client_->create(k8s::kCsiDrivers, {}, driver_object(provisioner_), k8s::Answer::kIdentity);
    if (!created.ok()) return failed(created.error(), k8s::kCsiDrivers, "create");
  } else {
    return failed(found.error(), k8s::kCsiDrivers, "get");
  }
  ++stats_.writes;
  log::info("free space of the nodes is published for provisioner {}: the scheduler goes by it",
            provisioner_);
  return true;
}

bool CapacityPublisher::failed(const Error& error, const k8s::Resource& resource,
                               std::string_view verb) {
  if (error.is(ErrorCode::kCancelled)) return false;  // we stop
  ++stats_.failures;
  if (error.is(ErrorCode::kForbidden)) {
    const std::string right = fmt::format("{} {}", verb, resource.plural);
    if (told_.insert(right).second) {
      log::error(
          "free space cannot be published: the service account may not {}; grant it {} (as "
          "deploy/capacity does), or leave out --capacity-provisioner-name: {}",
          right, rule(resource), error.message);
    }
    return false;
  }
  if (!trouble_told_) {
    log::warn("free space cannot be published, tried again every {} s: {} {}: {}", kPeriod.count(),
              verb, resource.plural, error.message);
    trouble_told_ = true;
  }
  return false;
}

}  // namespace lpp::provisioner
