// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "config/published.h"
#include "fakes/builders.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "provisioner/memory.h"
#include "provisioner/places.h"
#include "provisioner/world.h"

namespace lpp::testing {

/// What the API server says with 409 to the creation of what is there.
inline constexpr const char* kAlreadyExists =
    R"({"kind":"Status","reason":"AlreadyExists","code":409})";

/// Does nothing but what the test says: set progress per operation; what was asked of it is
/// recorded. Workers may call it at the same time; the test looks at the rest when they are idle.
class FakeExecutor final : public operation::Executor {
 public:
  using State = operation::Progress::State;
  struct Record {
    operation::Operation operation{};
    operation::Progress progress{};
  };

  void begin(operation::Owner new_owner) override { owner = std::move(new_owner); }
  void end(Duration /*limit*/) override { owner = {}; }
  void node_changed(std::string_view /*node*/) override {}
  std::string sight(const std::string& node, const std::string& base_path) const override {
    return of_disk(sights, node, base_path);
  }
  std::string why_unfit(const std::string& node, const std::string& base_path) const override {
    return of_disk(unfit, node, base_path);
  }

  std::vector<operation::Recorded> recorded(std::string_view volume) override {
    MutexLock lock(mutex_);
    std::vector<operation::Recorded> all;
    for (const auto& [operation, progress] : records) {
      if (operation.volume_name != volume) continue;
      all.push_back({std::make_shared<const operation::Operation>(operation), progress});
    }
    return all;
  }
  operation::Progress lost(const operation::Operation& /*operation*/) const override {
    return {.state = State::kFailed, .message = "it was removed before it ended", .reason = "Lost"};
  }
  Result<bool> can_resize(const operation::Operation& /*operation*/) override { return has_way; }
  operation::Admission admit(const operation::Operation& operation) override {
    MutexLock lock(mutex_);
    if (is_full) {
      turned_away.push_back(operation);
      return {};
    }
    return operation::Admission([] {});
  }
  Result<Start> start(const operation::Operation& operation) override {
    MutexLock lock(mutex_);
    if (error) return *error;
    if (const auto it = find(operation.id()); it != records.end()) {
      it->progress.outdated = false;
      return Start::kRecorded;
    }
    started.push_back(operation);
    records.push_back({operation, {}});
    return Start::kRecorded;
  }
  Result<void> cancel(const operation::Id& id) override {
    MutexLock lock(mutex_);
    if (error) return *error;
    cancelled.push_back(std::string(to_string(id.kind)) + " " + id.volume_name);
    if (const auto it = find(id); it != records.end()) it->progress = {.state = State::kEnding};
    return {};
  }
  Result<bool> forget(const operation::Id& id, When when) override {
    MutexLock lock(mutex_);
    if (error) return *error;
    const auto it = find(id);
    if (it == records.end()) return true;
    if (when == When::kWhenQuiet) quiet.push_back(id.volume_name);
    forgotten.push_back(std::string(to_string(id.kind)) + " " + id.volume_name);
    if (cache_is_late) {
      it->progress = {.state = State::kEnding};
      return false;
    }
    records.erase(it);
    return true;
  }

  /// While workers are at it.
  bool has_started() const {
    MutexLock lock(mutex_);
    return !started.empty();
  }

  void succeed(operation::Kind kind, const std::string& volume,
               operation::Directory directory = operation::Directory::kUnknown) {
    last(kind, volume).progress = {.state = State::kSucceeded, .directory = directory};
  }
  void fail(operation::Kind kind, const std::string& volume, std::string message) {
    last(kind, volume).progress = {.state = State::kFailed, .message = std::move(message)};
  }
  void run(operation::Kind kind, const std::string& volume) {
    last(kind, volume).progress = {.state = State::kRunning};
  }
  bool has(operation::Kind kind, const std::string& volume) const {
    return std::any_of(records.begin(), records.end(), [&](const Record& record) {
      return record.operation.kind == kind && record.operation.volume_name == volume;
    });
  }
  /// What was recorded last of that kind.
  Record& last(operation::Kind kind, const std::string& volume) {
    const auto it = std::find_if(records.rbegin(), records.rend(), [&](const Record& record) {
      return record.operation.kind == kind && record.operation.volume_name == volume;
    });
    if (it == records.rend()) FAIL("nothing like that is on record: " << to_string(kind));
    return *it;
  }
  /// What was recorded last of that kind goes without anybody's word.
  void vanish(operation::Kind kind, const std::string& volume) {
    const auto id = last(kind, volume).operation.id();
    records.erase(find(id));
  }

  operation::Owner owner{};
  std::vector<Record> records;
  std::vector<operation::Operation> started;
  std::vector<operation::Operation> turned_away;
  std::vector<std::string> cancelled;
  std::map<std::string, std::string> sights;  // by base path or "n1:/data", like the next
  std::map<std::string, std::string> unfit;
  std::vector<std::string> forgotten;
  std::vector<std::string> quiet;  // those of them that may wait
  std::optional<Error> error;
  bool has_way = true;  // to resize
  bool is_full = false;
  bool cache_is_late = false;  // what is forgotten is known to be gone later only

 private:
  static std::string of_disk(const std::map<std::string, std::string>& known,
                             const std::string& node, const std::string& base_path) {
    auto it = known.find(node + ":" + base_path);
    if (it == known.end()) it = known.find(base_path);
    return it == known.end() ? std::string() : it->second;
  }
  std::vector<Record>::iterator find(const operation::Id& id) {
    return std::find_if(records.begin(), records.end(),
                        [&](const Record& record) { return record.operation.id() == id; });
  }

  mutable Mutex mutex_;
};

/// Events as "Warning ProvisioningFailed: text".
class RecordedEvents final : public k8s::EventSink {
 public:
  void event(const k8s::ObjectReference& about, k8s::EventType type, std::string_view reason,
             std::string message) override {
    MutexLock lock(mutex_);
    lines.push_back(about.kind + "/" + about.name +
                    (type == k8s::EventType::kWarning ? " Warning " : " Normal ") +
                    std::string(reason) + ": " + message);
  }
  Result<void> store(const k8s::ObjectReference& about, k8s::EventType type,
                     std::string_view reason, std::string message) override {
    if (error) return *error;
    event(about, type, reason, std::move(message));
    return {};
  }
  std::vector<std::string> lines;  // read where nobody is at work
  std::optional<Error> error;      // of storing one

 private:
  Mutex mutex_;
};

/// A cluster as a reconciler sees it. The members are set up before the world that refers to them.
struct Scene {
  FakeClock clock;
  FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  FakeExecutor executor;
  RecordedEvents events;
  config::Published<config::Config> config;
  k8s::StoreWriter<k8s::PersistentVolumeClaim> claims;
  k8s::StoreWriter<k8s::PersistentVolume> volumes;
  k8s::StoreWriter<k8s::StorageClass> classes;
  k8s::StoreWriter<k8s::Node> nodes;
  static constexpr const char* kJson = "application/json";
  std::map<std::string, std::string> served;  // volumes by name
  std::map<k8s::ObjectKey, nlohmann::json> put_claims;
  std::optional<nlohmann::json> api_claims;  // what the API server shows instead of the cache's
  /// Answers of the API server to reads of claims, before it tells the truth.
  FakeTransport::Script& claim_reads = transport.on("GET", "/persistentvolumeclaims");
  provisioner::OperationFigures figures{clock};
  provisioner::Places places{volumes, nodes, kProvisionerName};
  operation::PathLedger ledger{places};
  provisioner::Binding binding;
  operation::SpaceBoard space;
  operation::ToldUses uses{clock};
  provisioner::World world{kProvisionerName, client, clock,   events,  executor, ledger,
                           config,           claims, volumes, classes, nodes,    figures,
                           binding,          space,  uses};
  provisioner::Memories memories{
      clock, {.base = std::chrono::seconds(1), .cap = std::chrono::seconds(1000), .jitter = 0}, 15};

  /// Tests of the binding itself have it done by us.
  explicit Scene(provisioner::Binding::By by = provisioner::Binding::By::kControlPlane)
      : binding(clock, by) {
    config::Config first;
    first.paths.node_path_map["n1"] = {"/data"};
    first.paths.node_path_map["n2"] = {"/data", "/fast"};
    first.paths.node_path_map["empty"] = {};
    use(std::move(first));
    put(storage_class());
    put(node("n1"));
    put(node("n2"));
    put(node("empty"));
    transport.on("GET", "/persistentvolumeclaims").always([this](const auto& request) {
      return k8s::Response{
          .status = 200, .body = claim_list(request.target), .content_type = kJson};
    });
  }

  /// How many Events have that in their text.
  std::size_t told(std::string_view part) const {
    return static_cast<std::size_t>(std::count_if(
        events.lines.begin(), events.lines.end(),
        [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  bool has_event(std::string_view part) const { return told(part) > 0; }

  void use(config::Config next) {
    config.publish(std::make_shared<const config::Config>(std::move(next)));
  }
  void put(const ClaimBuilder& b) {
    claims.put(b.key(), b.shared());
    put_claims[b.key()] = b.json();
  }
  /// The API server has this claim and no other, whatever the cache shows.
  void api_shows(const ClaimBuilder& b) { api_claims = nlohmann::json::array({b.json()}); }
  void api_shows_no_claim() { api_claims = nlohmann::json::array(); }
  /// The API server shows it too, and deletes it, unless an earlier script says otherwise.
  void put(const VolumeBuilder& b) {
    volumes.put(b.build().meta.key(), b.shared());
    const std::string name = b.key().name;
    if (!served.contains(name)) {
      transport.on("GET", "/persistentvolumes/" + name).always([this, name](const auto&) {
        return k8s::Response{.status = 200, .body = served.at(name), .content_type = kJson};
      });
      transport.on("DELETE", "/persistentvolumes/" + name).always([](const auto&) {
        return k8s::Response{.status = 200, .body = "{}", .content_type = kJson};
      });
    }
    served[name] = b.json().dump();
  }
  void put(const StorageClassBuilder& b) { classes.put(b.build().meta.key(), b.shared()); }
  void put(const NodeBuilder& b) { nodes.put(b.build().meta.key(), b.shared()); }

 private:
  std::string claim_list(const std::string& target) const {
    nlohmann::json items = nlohmann::json::array();
    for (const auto& [key, json] : put_claims) {
      if (claims.get(key) != nullptr) items.push_back(json);
    }
    if (api_claims) items = *api_claims;
    const nlohmann::json all = std::exchange(items, nlohmann::json::array());
    for (const auto& item : all) {
      const auto& meta = item["metadata"];
      const bool asked_for =
          target.ends_with("/namespaces/" + meta["namespace"].get<std::string>() +
                           "/persistentvolumeclaims?fieldSelector=metadata.name%3D" +
                           meta["name"].get<std::string>());
      if (asked_for) items.push_back(item);
    }
    return nlohmann::json{{"metadata", {{"resourceVersion", "9"}}}, {"items", items}}.dump();
  }
};

}  // namespace lpp::testing
