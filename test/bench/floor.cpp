// SPDX-License-Identifier: Apache-2.0
#include "bench/floor.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "harness/json_access.h"
#include "harness/objects.h"
#include "helperpod/manifest.h"
#include "k8s/objects.h"

namespace lpp::bench {

namespace {

using nlohmann::json;
using operation::Kind;
using testing::annotation;
using testing::name_of;
using testing::text_at;

constexpr const char* kSelectedNode = "volume.kubernetes.io/selected-node";
constexpr const char* kPathNode = "local.path.provisioner/selected-node";
constexpr const char* kLabel = "bench-floor";
constexpr const char* kVolume = "bench-floor/volume";
constexpr const char* kServiceAccount = "local-path-provisioner-service-account";

}  // namespace

/// Hands the objects of one kind to the floor.
class Floor::Sink final : public k8s::ReflectorSink {
 public:
  Sink(Floor& floor, void (Floor::*seen)(const json&)) : floor_(floor), seen_(seen) {}

  void list_begin() override {}
  void list_item(k8s::Value object) override { (floor_.*seen_)(k8s::to_json(object)); }
  void list_end() override { ++floor_.synced_; }
  void applied(k8s::Value object) override { (floor_.*seen_)(k8s::to_json(object)); }
  void deleted(k8s::Value) override {}

 private:
  Floor& floor_;
  void (Floor::*const seen_)(const json&);
};

std::set<std::string> floor_flags() {
  return {"kubeconfig", "helper-namespace", "class",       "image",
          "base",       "pod-template",     "connections", "work"};
}

Result<FloorOptions> floor_options(const Arguments& arguments) {
  FloorOptions options;
  options.helper_ns = arguments.text("helper-namespace", options.helper_ns);
  options.storage_class = arguments.text("class", options.storage_class);
  options.image = arguments.text("image", options.image);
  options.base = arguments.text("base", options.base);
  if (const std::string file = arguments.text("pod-template"); !file.empty()) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return invalid("--pod-template: cannot read " + file);
    const std::string yaml{std::istreambuf_iterator<char>(in), {}};
    LPP_ASSIGN_OR_RETURN(options.pod_template, helperpod::parse_template(yaml, file, true),
                         "--pod-template");
  }
  LPP_ASSIGN_OR_RETURN(options.connections, arguments.number("connections", options.connections),
                       "floor");
  const std::string work = arguments.text("work", "pods");
  if (work == "volumes") {
    options.work = FloorWork::kVolumes;
  } else if (work == "bound") {
    options.work = FloorWork::kBound;
  } else if (work != "pods") {
    return invalid("--work: pods, volumes or bound, not " + work);
  }
  if (options.connections == 0) return invalid("--connections must be at least 1");
  return options;
}

Floor::Floor(k8s::ApiClient& client, Clock& clock, FloorOptions options)
    : client_(client), options_(std::move(options)) {
  const auto watch = [&](const k8s::ReflectorOptions& reflector, void (Floor::*seen)(const json&)) {
    sinks_.push_back(std::make_unique<Sink>(*this, seen));
    reflectors_.push_back(
        std::make_unique<k8s::Reflector>(client_, clock, reflector, *sinks_.back()));
  };
  watch({.resource = k8s::kPersistentVolumeClaims,
         .projection = k8s::fields_of<k8s::PersistentVolumeClaim>()},
        &Floor::claim_seen);
  watch(
      {.resource = k8s::kPersistentVolumes, .projection = k8s::fields_of<k8s::PersistentVolume>()},
      &Floor::volume_seen);
  watch({.resource = k8s::kPods,
         .ns = options_.helper_ns,
         .label_selector = kLabel,
         .projection = k8s::fields_of<k8s::Pod>()},
        &Floor::pod_seen);
}

Floor::~Floor() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (auto& thread : threads_) thread.request_stop();
}

void Floor::start() {
  for (auto& reflector : reflectors_) {
    threads_.emplace_back([&reflector](const std::stop_token& stop) { reflector->run(stop); });
  }
  for (std::size_t i = 0; i < options_.connections; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

bool Floor::has_synced() const { return synced_ >= reflectors_.size(); }

bool Floor::first_time(const std::string& text) {
  MutexLock lock(mutex_);
  return done_.insert(text).second;
}

void Floor::add(Call call) {
  MutexLock lock(mutex_);
  calls_.push_back(std::move(call));
  changed_.notify_one();
}

void Floor::work(const std::stop_token&) {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (calls_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    const Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    if (const auto done = call(); !done.ok()) log::warn("{}", done.error().message);
    lock.lock();
  }
}

void Floor::claim_seen(const json& claim) {
  const json& meta = claim.at("metadata");
  const std::string node = annotation(claim, kSelectedNode);
  if (text_at(claim, {"spec", "storageClassName"}) != options_.storage_class || node.empty())
    return;
  if (!text_at(claim, {"spec", "volumeName"}).empty()) return;
  const std::string volume = "pvc-" + meta.at("uid").get<std::string>();
  if (options_.work != FloorWork::kPods) {
    if (!first_time("create " + volume)) return;
    add([=, this]() -> Result<void> {
      LPP_RETURN_IF_ERROR(create_volume(claim, volume, node), "volume");
      return options_.work == FloorWork::kBound ? bind(claim, volume) : Result<void>();
    });
    return;
  }
  {
    MutexLock lock(mutex_);
    claims_[volume] = std::make_shared<const json>(claim);
  }
  if (first_time("create " + volume))
    add([=, this] { return create_pod(Kind::kMake, volume, node); });
}

void Floor::volume_seen(const json& volume) {
  const std::string name = name_of(volume);
  const std::string node = annotation(volume, kPathNode);
  if (text_at(volume, {"status", "phase"}) != "Released") return;
  if (text_at(volume, {"spec", "storageClassName"}) != options_.storage_class) return;
  if (!first_time("delete " + name)) return;
  add([=, this] {
    return options_.work == FloorWork::kPods ? create_pod(Kind::kRemove, name, node)
                                             : remove_volume(name);
  });
}

void Floor::pod_seen(const json& pod) {
  if (text_at(pod, {"status", "phase"}) != "Succeeded") return;
  const json& meta = pod.at("metadata");
  const std::string name = meta.at("name").get<std::string>();
  const std::string volume = annotation(pod, kVolume);
  if (!first_time("end " + name)) return;
  if (meta.at("labels").at(kLabel) == "delete") {
    add([=, this]() -> Result<void> {
      LPP_RETURN_IF_ERROR(remove_volume(volume), "volume");
      return remove_pod(name);
    });
    return;
  }
  std::shared_ptr<const json> claim;
  {
    MutexLock lock(mutex_);
    if (const auto it = claims_.find(volume); it != claims_.end()) {
      claim = it->second;
      claims_.erase(it);
    }
  }
  if (!claim) return;
  const std::string node = pod.at("spec").value("nodeName", "");
  add([=, this]() -> Result<void> {
    LPP_RETURN_IF_ERROR(create_volume(*claim, volume, node), "volume");
    return remove_pod(name);
  });
}

Result<json> Floor::pod_object(operation::Kind action, const std::string& volume,
                               const std::string& node) const {
  if (options_.pod_template) {
    const operation::Operation operation{.kind = action,
                                         .volume_name = volume,
                                         .owner_uid = volume,
                                         .storage_class = options_.storage_class,
                                         .node = node,
                                         .base_path = options_.base,
                                         .path = path_of(volume),
                                         .size_bytes = 1 << 20};
    return helperpod::make_pod(*options_.pod_template, operation,
                               {.provisioner_name = kLabel,
                                .ns = options_.helper_ns,
                                .service_account = kServiceAccount,
                                .config_map = "local-path-config",
                                .helper_image = options_.image});
  }
  const json container = {{"name", "helper-pod"},
                          {"image", options_.image},
                          {"imagePullPolicy", "IfNotPresent"},
                          {"command", {"/bin/true"}}};
  return json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", "floor-" + std::string(operation::script_action(action)) + "-" + volume}}},
              {"spec",
               {{"restartPolicy", "Never"},
                {"nodeName", node},
                {"serviceAccountName", kServiceAccount},
                {"automountServiceAccountToken", false},
                {"containers", json::array({container})},
                {"tolerations", json::array({{{"operator", "Exists"}}})}}}};
}

Result<void> Floor::create_pod(operation::Kind action, const std::string& volume,
                               const std::string& node) {
  LPP_ASSIGN_OR_RETURN(json pod, pod_object(action, volume, node), "pod");
  pod["metadata"]["labels"][kLabel] = operation::script_action(action);
  pod["metadata"]["annotations"][kVolume] = volume;
  const auto made = client_.create(k8s::kPods, options_.helper_ns, pod);
  if (!made.ok()) return made.error().wrap("pod");
  return {};
}

Result<void> Floor::create_volume(const json& claim, const std::string& volume,
                                  const std::string& node) {
  const json& meta = claim.at("metadata");
  const json& spec = claim.at("spec");
  const json term = {{"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                                        {"operator", "In"},
                                                        {"values", json::array({node})}}})}};
  const auto made = client_.create(
      k8s::kPersistentVolumes, {},
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolume"},
       {"metadata",
        {{"name", volume},
         {"annotations",
          {{"pv.kubernetes.io/provisioned-by", options_.provisioner}, {kPathNode, node}}},
         {"finalizers", options_.work == FloorWork::kVolumes
                            ? json::array()
                            : json::array({testing::kVolumeFinalizer})}}},
       {"spec",
        {{"capacity", {{"storage", spec["resources"]["requests"]["storage"]}}},
         {"accessModes", spec.at("accessModes")},
         {"persistentVolumeReclaimPolicy", "Delete"},
         {"storageClassName", options_.storage_class},
         {"hostPath", {{"path", path_of(volume)}, {"type", "DirectoryOrCreate"}}},
         {"claimRef",
          {{"apiVersion", "v1"},
           {"kind", "PersistentVolumeClaim"},
           {"namespace", meta.at("namespace")},
           {"name", meta.at("name")},
           {"uid", meta.at("uid")},
           {"resourceVersion", meta.at("resourceVersion")}}},
         {"nodeAffinity", {{"required", {{"nodeSelectorTerms", json::array({term})}}}}}}}});
  if (!made.ok()) return made.error();
  return {};
}

Result<void> Floor::bind(const json& claim, const std::string& volume) {
  const json& meta = claim.at("metadata");
  const k8s::ObjectKey key{meta.at("namespace").get<std::string>(),
                           meta.at("name").get<std::string>()};
  const json annotations = {{"pv.kubernetes.io/bind-completed", "yes"},
                            {"pv.kubernetes.io/bound-by-controller", "yes"}};
  const json& spec = claim.at("spec");
  const auto patch = [&](const k8s::Resource& resource, const k8s::ObjectKey& of, const json& what,
                         const char* subresource) -> Result<void> {
    const auto patched = client_.patch(resource, of, k8s::PatchType::kMerge, what, subresource,
                                       k8s::Answer::kIdentity);
    if (!patched.ok()) return patched.error().wrap("bind");
    return {};
  };
  LPP_RETURN_IF_ERROR(
      patch(k8s::kPersistentVolumes, {"", volume}, {{"status", {{"phase", "Bound"}}}}, "status"),
      "volume");
  LPP_RETURN_IF_ERROR(
      patch(k8s::kPersistentVolumeClaims, key,
            {{"metadata", {{"annotations", annotations}}}, {"spec", {{"volumeName", volume}}}}, ""),
      "claim");
  return patch(k8s::kPersistentVolumeClaims, key,
               {{"status",
                 {{"phase", "Bound"},
                  {"accessModes", spec.at("accessModes")},
                  {"capacity", spec.at("resources").at("requests")}}}},
               "status");
}

Result<void> Floor::remove_volume(const std::string& volume) {
  LPP_RETURN_IF_ERROR(client_.remove(k8s::kPersistentVolumes, {"", volume}), "volume");
  if (options_.work == FloorWork::kVolumes) return {};
  const auto patched = client_.patch(k8s::kPersistentVolumes, {"", volume}, k8s::PatchType::kMerge,
                                     {{"metadata", {{"finalizers", nullptr}}}});
  if (!patched.ok()) return patched.error().wrap("finalizer");
  return {};
}

Result<void> Floor::remove_pod(const std::string& name) {
  return client_.remove(k8s::kPods, {options_.helper_ns, name}, {.grace_period_seconds = 0});
}

}  // namespace lpp::bench
