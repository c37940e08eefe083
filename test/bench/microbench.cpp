// SPDX-License-Identifier: Apache-2.0
// lpp_microbench: what runs for each object, by Google Benchmark. The watch and the list go through
// the real reflector and informer, over a transport that answers from memory.

#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/wiring.h"
#include "base/clock.h"
#include "base/log.h"
#include "devcluster/apiserver/protobuf_writer.h"
#include "harness/objects.h"
#include "k8s/api_client.h"
#include "k8s/informer.h"
#include "k8s/quantity.h"
#include "k8s/reflector.h"
#include "k8s/store.h"
#include "k8s/transport.h"
#include "k8s/work_queue.h"
#include "provisioner/patterns.h"
#include "provisioner/volume_rules.h"

namespace lpp::bench {
namespace {

using nlohmann::json;

constexpr std::size_t kObjects = 1000;
constexpr const char* kProvisioner = "rancher.io/local-path";
constexpr const char* kOther = "example.com/other";

json managed_fields() {
  const json fields = {{"f:metadata", {{"f:annotations", {{".", json::object()}}}}},
                       {"f:spec", {{"f:accessModes", json::object()}}}};
  return json::array({{{"manager", "local-path-provisioner"},
                       {"operation", "Update"},
                       {"apiVersion", "v1"},
                       {"time", "2026-01-01T00:00:00Z"},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", fields}}});
}

/// As the API server sends it, of our provisioner or of another one.
json volume(std::size_t number, const std::string& provisioner) {
  const std::string name =
      "pvc-0b6e1f9e-0000-4000-8000-" + std::to_string(100'000'000'000 + number);
  const json term = {{"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                                        {"operator", "In"},
                                                        {"values", json::array({"node-1"})}}})}};
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata",
           {{"name", name},
            {"uid", "uid-" + std::to_string(number)},
            {"resourceVersion", std::to_string(1000 + number)},
            {"creationTimestamp", "2026-01-01T00:00:00Z"},
            {"annotations",
             {{"pv.kubernetes.io/provisioned-by", provisioner},
              {"local.path.provisioner/selected-node", "node-1"}}},
            {"finalizers", json::array({"external-provisioner.volume.kubernetes.io/finalizer",
                                        "kubernetes.io/pv-protection"})},
            {"managedFields", managed_fields()}}},
          {"spec",
           {{"capacity", {{"storage", "1Gi"}}},
            {"accessModes", json::array({"ReadWriteOnce"})},
            {"persistentVolumeReclaimPolicy", "Delete"},
            {"storageClassName", "local-path"},
            {"volumeMode", "Filesystem"},
            {"hostPath", {{"path", "/opt/local/" + name}, {"type", "DirectoryOrCreate"}}},
            {"claimRef",
             {{"kind", "PersistentVolumeClaim"},
              {"namespace", "default"},
              {"name", "claim-" + std::to_string(number)},
              {"uid", "claim-uid-" + std::to_string(number)}}},
            {"nodeAffinity", {{"required", {{"nodeSelectorTerms", json::array({term})}}}}}}},
          {"status", {{"phase", "Bound"}, {"lastPhaseTransitionTime", "2026-01-01T00:00:00Z"}}}};
}

enum class Format { kProtobuf, kJson };

json list_of(const json& items) {
  return {{"kind", "PersistentVolumeList"},
          {"apiVersion", "v1"},
          {"metadata", {{"resourceVersion", "999"}}},
          {"items", items}};
}

/// An API server that knows one list and one watch, and then ends. Ready-made bytes: what is
/// measured is the client.
class MemoryTransport final : public k8s::Transport {
 public:
  MemoryTransport(const std::string& provisioner, Format format) {
    json items = json::array();
    std::vector<devcluster::ObjectPtr> objects;
    for (std::size_t i = 0; i < kObjects; ++i) {
      json object = volume(i, provisioner);
      if (format == Format::kJson) {
        frames_ += json{{"type", "ADDED"}, {"object", object}}.dump() + "\n";
        items.push_back(std::move(object));
        continue;
      }
      object["metadata"].erase("managedFields");  // the writer does not know them
      frames_ += devcluster::protobuf_frame("ADDED", object);
      objects.push_back(std::make_shared<const json>(std::move(object)));
    }
    empty_list_ = list_of(json::array()).dump();
    list_ = format == Format::kJson
                ? list_of(items).dump()
                : devcluster::protobuf_list("PersistentVolume", "v1", {{"resourceVersion", "999"}},
                                            objects)
                      .value();
  }

  void serve_list(bool full) { full_list_ = full; }
  std::size_t list_bytes() const { return list_.size(); }
  std::size_t watch_bytes() const { return frames_.size(); }

  Result<k8s::Response> round_trip(const k8s::Request&, const std::stop_token&) override {
    return k8s::Response{.status = 200, .body = full_list_ ? list_ : empty_list_};
  }
  Result<k8s::Response> stream(const k8s::Request&, const k8s::ChunkSink& sink,
                               const std::stop_token&) override {
    constexpr std::size_t kChunk = 16'384;
    const std::string_view all = frames_;
    for (std::size_t at = 0; at < all.size(); at += kChunk) {
      if (!sink(all.substr(at, kChunk))) break;
    }
    return k8s::Response{.status = 200};
  }

 private:
  std::string list_;
  std::string empty_list_;
  std::string frames_;
  bool full_list_ = false;
};

/// A reflector's sink that decodes, trims and stores, as an informer does without its thread.
class StoringSink final : public k8s::ReflectorSink {
 public:
  void list_begin() override {}
  void list_item(k8s::Value object) override { keep(object); }
  void list_end() override {}
  void applied(k8s::Value object) override { keep(object); }
  void deleted(k8s::Value) override {}

 private:
  void keep(k8s::Value object) {
    auto decoded = k8s::decode<k8s::PersistentVolume>(object);
    if (!decoded.ok()) return;
    trim_(*decoded);
    const k8s::ObjectKey key = decoded->meta.key();
    store_.put(key, std::make_shared<const k8s::PersistentVolume>(*std::move(decoded)));
  }

  k8s::Informer<k8s::PersistentVolume>::Trim trim_ = app::trim_volumes(kProvisioner);
  k8s::StoreWriter<k8s::PersistentVolume> store_;
};

/// As an informer asks.
const k8s::ReflectorOptions kVolumes{.resource = k8s::kPersistentVolumes,
                                     .projection = k8s::fields_of<k8s::PersistentVolume>()};

/// From the bytes of a watch to the store, per object.
void watch_frames(benchmark::State& state, const std::string& provisioner, Format format) {
  MemoryTransport transport(provisioner, format);
  SystemClock clock;
  k8s::ApiClient client(transport, clock, {});
  for (auto _ : state) {
    state.PauseTiming();
    StoringSink sink;
    k8s::Reflector reflector(client, clock, kVolumes, sink);
    reflector.step({});  // the list, which is empty
    state.ResumeTiming();
    reflector.step({});
  }
  const auto objects = static_cast<std::int64_t>(state.iterations() * kObjects);
  state.SetItemsProcessed(objects);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * transport.watch_bytes()));
}
BENCHMARK_CAPTURE(watch_frames, ours, kProvisioner, Format::kProtobuf)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(watch_frames, others, kOther, Format::kProtobuf)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(watch_frames, ours_json, kProvisioner, Format::kJson)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(watch_frames, others_json, kOther, Format::kJson)->Unit(benchmark::kMillisecond);

/// From the bytes of a list to the store, per object.
void list_page(benchmark::State& state, const std::string& provisioner, Format format) {
  MemoryTransport transport(provisioner, format);
  transport.serve_list(true);
  SystemClock clock;
  k8s::ApiClient client(transport, clock, {});
  for (auto _ : state) {
    StoringSink sink;
    k8s::Reflector reflector(client, clock, kVolumes, sink);
    reflector.step({});
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kObjects));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * transport.list_bytes()));
}
BENCHMARK_CAPTURE(list_page, ours, kProvisioner, Format::kProtobuf)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(list_page, others, kOther, Format::kProtobuf)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(list_page, ours_json, kProvisioner, Format::kJson)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(list_page, others_json, kOther, Format::kJson)->Unit(benchmark::kMillisecond);

void trim_volume(benchmark::State& state, const std::string& provisioner) {
  const auto decoded = k8s::decode<k8s::PersistentVolume>(volume(1, provisioner));
  const auto trim = app::trim_volumes(kProvisioner);
  for (auto _ : state) {
    k8s::PersistentVolume copy = *decoded;
    trim(copy);
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK_CAPTURE(trim_volume, ours, kProvisioner);
BENCHMARK_CAPTURE(trim_volume, others, kOther);

void store_update(benchmark::State& state) {
  k8s::StoreWriter<k8s::PersistentVolume> store;
  std::vector<k8s::ObjectKey> keys;
  const auto object = std::make_shared<const k8s::PersistentVolume>();
  for (std::size_t i = 0; i < kObjects; ++i) {
    keys.push_back({"", "pvc-" + std::to_string(i)});
    store.put(keys.back(), object);
  }
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(store.put(keys[next++ % kObjects], object));
}
BENCHMARK(store_update);

/// Whether a new directory overlaps one of so many volumes: it does not.
void overlap_search(benchmark::State& state) {
  const k8s::StoreWriter<k8s::Node> nodes;
  k8s::StoreWriter<k8s::PersistentVolume> store;
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.range(0)); ++i) {
    auto object = k8s::decode<k8s::PersistentVolume>(volume(i, kProvisioner)).value();
    const k8s::ObjectKey key = object.meta.key();
    store.put(key, std::make_shared<const k8s::PersistentVolume>(std::move(object)));
  }
  operation::Operation operation;
  operation.node = "node-1";
  operation.base_path = "/opt/local";
  operation.path = "/opt/local/pvc-0b6e1f9e-0000-4000-8000-new";
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        provisioner::overlapping_volume(store, nodes, operation, kProvisioner, {}));
  }
}
BENCHMARK(overlap_search)->Arg(100)->Arg(10'000);

/// One key through the queue: added twice, handed out once.
void queue_round(benchmark::State& state) {
  SystemClock clock;
  k8s::WorkQueue<std::string> queue(clock);
  const std::string key = "pvc-0b6e1f9e-0000-4000-8000-000000000000";
  for (auto _ : state) {
    queue.add(key);
    queue.add(key);
    const auto taken = queue.get();
    queue.forget(*taken);
    queue.add_after(*taken, std::chrono::seconds(300));
    queue.done(*taken);
  }
}
BENCHMARK(queue_round);

struct NamespaceOfKey {
  std::string_view operator()(const k8s::ObjectKey& key) const { return key.ns; }
};
struct HashOfKey {
  std::size_t operator()(const k8s::ObjectKey& key) const noexcept {
    return std::hash<std::string>()(key.name) ^ std::hash<std::string>()(key.ns);
  }
};

/// 2,000 keys through the queue, of so many namespaces.
void queue_crowd(benchmark::State& state) {
  SystemClock clock;
  k8s::WorkQueue<k8s::ObjectKey, HashOfKey, NamespaceOfKey> queue(clock);
  const auto namespaces = static_cast<std::size_t>(state.range(0));
  std::vector<k8s::ObjectKey> keys;
  for (std::size_t i = 0; i < 2000; ++i) {
    keys.push_back({"team-" + std::to_string(i % namespaces), "claim-" + std::to_string(i)});
  }
  for (auto _ : state) {
    for (const auto& key : keys) queue.add(key);
    while (queue.size() > 0) {
      const auto taken = queue.get();
      queue.done(*taken);
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(queue_crowd)->Arg(1)->Arg(20)->Arg(2000)->Unit(benchmark::kMicrosecond);

void quantity(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(k8s::Quantity::parse(text));
}
BENCHMARK_CAPTURE(quantity, binary, "10Gi");
BENCHMARK_CAPTURE(quantity, decimal, "1.5e3");

void pattern(benchmark::State& state, const std::string& text) {
  k8s::PersistentVolumeClaim claim;
  claim.meta.ns = "default";
  claim.meta.name = "data";
  claim.meta.labels = {{"app", "db"}};
  k8s::StorageClass storage_class;
  if (!text.empty()) storage_class.parameters["pathPattern"] = text;
  for (auto _ : state) {
    benchmark::DoNotOptimize(provisioner::render_patterns(claim, storage_class, "pvc-1"));
  }
}
BENCHMARK_CAPTURE(pattern, none, "");
BENCHMARK_CAPTURE(pattern, names, "{{ .PVC.Namespace }}/{{ .PVC.Name }}");
BENCHMARK_CAPTURE(
    pattern, conditions,
    R"({{ .PVC.Namespace }}/{{ .PVC.Name }}/{{ with .PVC.Labels.app }}{{ printf "%s-%s" . $.PVName }}{{ end }})");

}  // namespace
}  // namespace lpp::bench

int main(int argc, char** argv) {
  lpp::log::set_up(lpp::log::Level::kError);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
