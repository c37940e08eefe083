// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/parse_time.h"
#include "config/config_parser.h"
#include "helperpod/manifest.h"
#include "k8s/json_access.h"
#include "provisioner/volume_rules.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

using nlohmann::json;

constexpr int kPage = 500;

template <typename T>
void put(const json& object, ClusterView& view, k8s::StoreWriter<T>& store) {
  auto decoded = k8s::decode<T>(object);
  if (!decoded.ok()) {
    view.notes.push_back(fmt::format("{} {} is left out: {}", T::kResource.kind,
                                     text(member(object, "metadata"), "name"),
                                     decoded.error().message));
    return;
  }
  const auto key = decoded->meta.key();
  store.put(key, std::make_shared<const T>(*std::move(decoded)));
}

void add_volume(const json& object, ClusterView& view) {
  auto decoded = k8s::decode<k8s::PersistentVolume>(object);
  if (!decoded.ok()) {
    view.unreadable_volumes.push_back(text(member(object, "metadata"), "name"));
    return;
  }
  const auto volume = std::make_shared<const k8s::PersistentVolume>(*std::move(decoded));
  const auto key = volume->meta.key();
  if (provisioner::is_ours(*volume, view.names)) {
    view.volumes.put(key, volume);
    view.directories.put(key, volume);
  } else if (provisioner::made_by_hand(*volume)) {
    view.directories.put(
        key, std::make_shared<const k8s::PersistentVolume>(provisioner::reduced_to_place(*volume)));
  } else {
    k8s::PersistentVolume place = provisioner::reduced_to_place(*volume);
    if (volume->path.empty()) place.path.clear();
    view.others.put(key, std::make_shared<const k8s::PersistentVolume>(std::move(place)));
  }
}

/// An optional part of the view: a failure becomes a note.
template <typename Take>
void optional_list(Cluster& cluster, ClusterView& view, const k8s::Resource& resource,
                   std::string_view ns, const k8s::ListOptions& options, std::string_view missing,
                   const Take& take) {
  const auto objects = cluster.list(resource, ns, options);
  if (!objects.ok()) {
    view.notes.push_back(fmt::format("{} (so {})", objects.error().message, missing));
    return;
  }
  for (const json& object : *objects) take(object);
}

/// Objects without which there is no answer, or with part_suffices only a part of one.
template <typename Take>
Result<bool> needed_list(Cluster& cluster, ClusterView& view, const k8s::Resource& resource,
                         const LoadOptions& options, std::string_view missing, const Take& take) {
  const auto objects = cluster.list(resource);
  if (!objects.ok()) {
    if (!options.part_suffices || !objects.error().is(ErrorCode::kForbidden)) {
      return Error(objects.error()).wrap("read the cluster");
    }
    view.notes.push_back(fmt::format("{} (so {})", objects.error().message, missing));
    return false;
  }
  for (const json& object : *objects) take(object);
  return true;
}

void take_helper_pod(const json& object, ClusterView& view) {
  auto pod = k8s::decode<k8s::Pod>(object);
  auto operation = pod.ok() ? helperpod::operation_of(*pod) : pod.error();
  if (operation.ok()) {
    view.helper_pods.push_back({*std::move(pod), *std::move(operation)});
  } else {
    view.unreadable_helper_pods.push_back(text(member(object, "metadata"), "name"));
  }
}

void take_event(const json& object, ClusterView& view) {
  EventNote note = event_note(object);
  if (note.kind == "PersistentVolumeClaim" || note.kind == "PersistentVolume") {
    view.events.push_back(std::move(note));
  }
}

void load_config(Cluster& cluster, const Installation& installation, ClusterView& view) {
  const auto found =
      cluster.api().get(k8s::kConfigMaps, {installation.ns, installation.config_map});
  if (!found.ok()) {
    view.notes.push_back(fmt::format("the configuration is not known: {}", found.error().message));
    return;
  }
  auto parsed = config::parse_config(text(member(*found, "data"), "config.json"), "config.json");
  if (parsed.ok()) {
    view.config = std::move(parsed->config);
  } else {
    view.notes.push_back(parsed.error().message);
  }
}

}  // namespace

Cluster::Cluster(Connection connection, Clock& clock,
                 std::optional<std::chrono::milliseconds> request_timeout)
    : connection_(std::move(connection)),
      request_timeout_(request_timeout),
      client_(*connection_.transport, clock,
              {.call_timeout = patience(k8s::ApiClient::Options().call_timeout),
               .list_timeout = patience(k8s::ApiClient::Options().list_timeout)}) {}

Result<std::unique_ptr<Cluster>> Cluster::open(Context& context, const FlagReader& flags,
                                               std::optional<std::chrono::milliseconds> patience) {
  auto request = connection_request(flags);
  if (!request.ok()) return std::move(request).error();
  if (!request->request_timeout) request->request_timeout = patience;
  LPP_ASSIGN_OR_RETURN(auto connection, context.connect(*request), "cannot reach a cluster");
  return std::unique_ptr<Cluster>(
      new Cluster(std::move(connection), context.clock, request->request_timeout));
}

Result<std::string> Cluster::version() {
  k8s::Request request{.method = "GET", .target = "/version"};
  request.timeout = patience(request.timeout);
  LPP_ASSIGN_OR_RETURN(const auto response, connection_.transport->round_trip(request, {}),
                       fmt::format("cannot reach the API server ({})", connection_.source));
  if (response.status != 200) return k8s::error_from_response(response).wrap("GET /version");
  const json answer = json::parse(response.body, nullptr, false);
  return text(answer, "gitVersion");
}

Result<std::vector<json>> Cluster::list(const k8s::Resource& resource, std::string_view ns,
                                        k8s::ListOptions options) {
  std::vector<json> all;
  options.limit = kPage;
  bool restarted = false;
  while (true) {
    auto page = client_.list(resource, ns, options);
    if (!page.ok() && page.error().is(ErrorCode::kExpired) && !restarted) {
      restarted = true;  // the rest of the pages is gone: once more, from the beginning
      all.clear();
      options.continue_token.clear();
      continue;
    }
    if (!page.ok()) return std::move(page).error().wrap(fmt::format("list {}", resource.plural));
    if (const auto items = page->find("items"); items != page->end() && items->is_array()) {
      for (json& item : *items) all.push_back(std::move(item));
    }
    options.continue_token = text(member(*page, "metadata"), "continue");
    if (options.continue_token.empty()) return all;
  }
}

EventNote event_note(const json& event) {
  EventNote note;
  note.type = text(event, "type");
  note.reason = text(event, "reason");
  note.message = text(event, "message");
  note.component = text(event, "reportingComponent");
  if (note.component.empty()) note.component = text(member(event, "source"), "component");
  const json& about = member(event, "involvedObject");
  note.kind = text(about, "kind");
  note.about = {text(about, "namespace"), text(about, "name")};
  note.uid = text(about, "uid");
  const json& series = member(event, "series");
  for (const json& count : {member(event, "count"), member(series, "count")}) {
    if (count.is_number_integer()) note.count = std::max(note.count, count.get<int>());
  }
  for (const std::string& time :
       {text(series, "lastObservedTime"), text(event, "lastTimestamp"), text(event, "eventTime"),
        text(event, "firstTimestamp"), text(member(event, "metadata"), "creationTimestamp")}) {
    if (const auto parsed = parse_rfc3339(time)) {
      note.time = *parsed;
      break;
    }
  }
  return note;
}

Result<config::Config> config_in_force(const Installation& installation, const ClusterView& view) {
  if (installation.config_flag.find('{') != std::string::npos) {
    auto parsed = config::parse_config(installation.config_flag, "--config");
    if (!parsed.ok()) return parsed.error();
    return parsed->config;
  }
  if (view.config) return *view.config;
  return Error{.code = ErrorCode::kNotFound,
               .message = (view.notes.empty() ? "the configuration is not known" : view.notes[0]) +
                          "; without it nobody knows which paths all nodes share"};
}

void add_object(const json& object, ClusterView& view) {
  const std::string kind = text(object, "kind");
  if (kind == "PersistentVolumeClaim") return put(object, view, view.claims);
  if (kind == "PersistentVolume") return add_volume(object, view);
  if (kind == "StorageClass") return put(object, view, view.classes);
  if (kind == "Node") {
    view.nodes_known = true;
    return put(object, view, view.nodes);
  }
}

Result<void> load(Cluster& cluster, const Installation& installation, const LoadOptions& options,
                  ClusterView& view) {
  view.names = installation.names();
  view.provisioner_namespace = installation.ns;
  const auto classes = needed_list(cluster, view, k8s::kStorageClasses, options,
                                   "claims of other provisioners may be among those that wait",
                                   [&](const json& object) { put(object, view, view.classes); });
  if (!classes.ok()) return classes.error();
  view.classes_known = *classes;
  LPP_ASSIGN_OR_RETURN(const auto claims, cluster.list(k8s::kPersistentVolumeClaims, options.ns),
                       "read the cluster");
  for (const json& object : claims) put(object, view, view.claims);
  const auto volumes = needed_list(cluster, view, k8s::kPersistentVolumes, options,
                                   "paths are not shown, nor volumes without a claim",
                                   [&](const json& object) { add_volume(object, view); });
  if (!volumes.ok()) return volumes.error();
  view.volumes_known = *volumes;

  if (options.nodes) {
    const std::size_t before = view.notes.size();
    optional_list(cluster, view, k8s::kNodes, "", {.metadata_only = true},
                  "nodes that are gone are not recognised",
                  [&](const json& object) { put(object, view, view.nodes); });
    view.nodes_known = view.notes.size() == before;
  }
  if (options.helper_pods) {
    optional_list(cluster, view, k8s::kPods, installation.ns,
                  {.label_selector = helperpod::label_selector(installation.provisioner_name)},
                  "operations in progress are not shown",
                  [&](const json& object) { take_helper_pod(object, view); });
  }
  if (options.events) {
    const auto take = [&](const json& object) { take_event(object, view); };
    const k8s::ListOptions warnings{.field_selector = "type=Warning"};
    constexpr std::string_view kMissing = "reasons may be missing";
    optional_list(cluster, view, k8s::kEvents, options.ns, warnings, kMissing, take);
    // Events about volumes stand in the namespace "default".
    if (!options.ns.empty() && options.ns != "default") {
      optional_list(cluster, view, k8s::kEvents, "default", warnings, kMissing, take);
    }
    std::stable_sort(view.events.begin(), view.events.end(),
                     [](const auto& a, const auto& b) { return a.time > b.time; });
  }
  if (options.waiting_pods) {
    optional_list(cluster, view, k8s::kPods, options.ns, {.field_selector = "status.phase=Pending"},
                  "pods that wait for a claim are not known",
                  [&](const json& object) { view.waiting_pods.push_back(object); });
  }
  if (options.config) load_config(cluster, installation, view);
  return {};
}

}  // namespace lpp::cli
