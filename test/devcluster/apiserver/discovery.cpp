// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/discovery.h"

#include <set>
#include <vector>

#include "devcluster/apiserver/resources.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

const std::vector<std::string> kVerbs = {"create", "delete", "deletecollection", "get",
                                         "list",   "patch",  "update",           "watch"};

/// Kinds that are only asked, never stored: {group, version, plural, kind, namespaced}.
struct ReviewKind {
  std::string group;
  std::string plural;
  std::string kind;
};
const std::vector<ReviewKind> kReviews = {
    {"authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"},
    {"authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"},
    {"authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"},
    {"authentication.k8s.io", "tokenreviews", "TokenReview"},
    {"authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"},
};

std::set<std::string> groups() {
  std::set<std::string> out;
  for (const auto& info : resource_table()) {
    if (!info.group.empty()) out.insert(info.group);
  }
  for (const auto& review : kReviews) out.insert(review.group);
  return out;
}

/// {subresource, kind, group of the kind} of a resource.
struct Subresource {
  std::string name;
  std::string kind;
  std::vector<std::string> verbs;
  std::string group{};
};
std::vector<Subresource> subresources(const ResourceInfo& info) {
  std::vector<Subresource> out;
  if (info.has_status) out.push_back({"status", info.kind, {"get", "patch", "update"}});
  for (const auto& name : info.others) {
    if (name == "log") out.push_back({name, info.kind, {"get"}});
    if (name == "binding") out.push_back({name, "Binding", {"create"}});
    if (name == "proxy") {
      out.push_back({name, "NodeProxyOptions", {"create", "delete", "get", "patch", "update"}});
    }
    if (name == "token") {
      out.push_back({name, "TokenRequest", {"create"}, "authentication.k8s.io"});
    }
  }
  return out;
}

Json resource_list(std::string_view group) {
  Json resources = Json::array();
  for (const auto& info : resource_table()) {
    if (info.group != group) continue;
    Json entry = {{"name", info.plural},
                  {"singularName", info.singular},
                  {"namespaced", info.namespaced},
                  {"kind", info.kind},
                  {"verbs", kVerbs}};
    if (!info.short_names.empty()) entry["shortNames"] = info.short_names;
    if (info.in_all) entry["categories"] = {"all"};
    resources.push_back(std::move(entry));
    for (const auto& sub : subresources(info)) {
      Json below = {{"name", info.plural + "/" + sub.name},
                    {"singularName", ""},
                    {"namespaced", info.namespaced},
                    {"kind", sub.kind},
                    {"verbs", sub.verbs}};
      if (!sub.group.empty()) below.update({{"group", sub.group}, {"version", "v1"}});
      resources.push_back(std::move(below));
    }
  }
  for (const auto& review : kReviews) {
    if (review.group != group) continue;
    resources.push_back({{"name", review.plural},
                         {"singularName", ""},
                         {"namespaced", false},
                         {"kind", review.kind},
                         {"verbs", {"create"}}});
  }
  const std::string version = group.empty() ? "v1" : std::string(group) + "/v1";
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", version},
          {"resources", std::move(resources)}};
}

Json group_entry(const std::string& group) {
  const Json version = {{"groupVersion", group + "/v1"}, {"version", "v1"}};
  return {{"name", group}, {"versions", Json::array({version})}, {"preferredVersion", version}};
}

Json response_kind(std::string_view group, const std::string& kind) {
  return {{"group", group}, {"version", "v1"}, {"kind", kind}};
}

Json aggregated_group(const std::string& group) {
  Json resources = Json::array();
  for (const auto& info : resource_table()) {
    if (info.group != group) continue;
    Json entry = {{"resource", info.plural},
                  {"responseKind", response_kind(group, info.kind)},
                  {"scope", info.namespaced ? "Namespaced" : "Cluster"},
                  {"singularResource", info.singular},
                  {"verbs", kVerbs}};
    if (!info.short_names.empty()) entry["shortNames"] = info.short_names;
    if (info.in_all) entry["categories"] = {"all"};
    Json below = Json::array();
    for (const auto& sub : subresources(info)) {
      below.push_back(
          {{"subresource", sub.name},
           {"responseKind", response_kind(sub.group.empty() ? group : sub.group, sub.kind)},
           {"verbs", sub.verbs}});
    }
    if (!below.empty()) entry["subresources"] = std::move(below);
    resources.push_back(std::move(entry));
  }
  for (const auto& review : kReviews) {
    if (review.group != group) continue;
    resources.push_back({{"resource", review.plural},
                         {"responseKind", response_kind(group, review.kind)},
                         {"scope", "Cluster"},
                         {"singularResource", ""},
                         {"verbs", {"create"}}});
  }
  Json metadata = Json::object();
  if (!group.empty()) metadata["name"] = group;
  return {
      {"metadata", std::move(metadata)},
      {"versions",
       Json::array(
           {{{"version", "v1"}, {"freshness", "Current"}, {"resources", std::move(resources)}}})}};
}

Json aggregated(const std::set<std::string>& names) {
  Json items = Json::array();
  for (const auto& name : names) items.push_back(aggregated_group(name));
  return {{"kind", "APIGroupDiscoveryList"},
          {"apiVersion", "apidiscovery.k8s.io/v2"},
          {"metadata", Json::object()},
          {"items", std::move(items)}};
}

std::string schema_name(const ResourceInfo& info) {
  return "io.k8s.api." +
         (info.group.empty() ? "core" : info.group.substr(0, info.group.find('.'))) + ".v1." +
         info.kind;
}

/// The operation that tells kubectl that the server validates fields itself.
Json patch_operation(const ResourceInfo& info) {
  const auto parameter = [](const char* name) -> Json {
    return {{"name", name}, {"in", "query"}, {"schema", {{"type", "string"}}}};
  };
  Json parameters = Json::array();
  for (const char* name : {"dryRun", "fieldManager", "fieldValidation", "force"}) {
    parameters.push_back(parameter(name));
  }
  const Json kind = {{"group", info.group}, {"version", "v1"}, {"kind", info.kind}};
  return {{"parameters", std::move(parameters)},
          {"responses", {{"200", {{"description", "OK"}}}}},
          {"x-kubernetes-action", "patch"},
          {"x-kubernetes-group-version-kind", kind}};
}

Json openapi_document(std::string_view group, const std::string& git_version) {
  Json paths = Json::object();
  Json schemas = Json::object();
  const std::string root =
      group.empty() ? std::string("/api/v1/") : "/apis/" + std::string(group) + "/v1/";
  for (const auto& info : resource_table()) {
    if (info.group != group) continue;
    const std::string path =
        root + (info.namespaced ? "namespaces/{namespace}/" : "") + info.plural + "/{name}";
    paths[path] = {{"patch", patch_operation(info)}};
    schemas[schema_name(info)] = {
        {"type", "object"},
        {"x-kubernetes-preserve-unknown-fields", true},
        {"x-kubernetes-group-version-kind",
         Json::array({{{"group", info.group}, {"version", "v1"}, {"kind", info.kind}}})}};
  }
  return {{"openapi", "3.0.0"},
          {"info", {{"title", "Embedded cluster"}, {"version", git_version}}},
          {"paths", std::move(paths)},
          {"components", {{"schemas", std::move(schemas)}}}};
}

Json openapi_v2(const std::string& git_version) {
  Json definitions = Json::object();
  for (const auto& info : resource_table()) {
    definitions[schema_name(info)] = {
        {"type", "object"},
        {"x-kubernetes-group-version-kind",
         Json::array({{{"group", info.group}, {"version", "v1"}, {"kind", info.kind}}})}};
  }
  return {{"swagger", "2.0"},
          {"info", {{"title", "Embedded cluster"}, {"version", git_version}}},
          {"paths", Json::object()},
          {"definitions", std::move(definitions)}};
}

}  // namespace

Json version_info(const std::string& git_version) {
  std::string major = "1";
  std::string minor;
  const auto dot = git_version.find('.');
  if (dot != std::string::npos) {
    minor = git_version.substr(dot + 1, git_version.find('.', dot + 1) - dot - 1);
  }
  return {{"major", major},  {"minor", minor},     {"gitVersion", git_version},
          {"gitCommit", ""}, {"gitTreeState", ""}, {"buildDate", "1970-01-01T00:00:00Z"},
          {"goVersion", ""}, {"compiler", ""},     {"platform", "linux/embedded"}};
}

std::optional<Json> discovery(std::string_view path, bool want_aggregated) {
  const auto names = groups();
  if (path == "/api") {
    if (want_aggregated) return aggregated({""});
    return Json{{"kind", "APIVersions"},
                {"apiVersion", "v1"},
                {"versions", {"v1"}},
                {"serverAddressByClientCIDRs", Json::array()}};
  }
  if (path == "/apis") {
    if (want_aggregated) return aggregated(names);
    Json entries = Json::array();
    for (const auto& name : names) entries.push_back(group_entry(name));
    return Json{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(entries)}};
  }
  if (path == "/api/v1") return resource_list("");
  for (const auto& name : names) {
    const std::string root = "/apis/" + name;
    if (path == root + "/v1") return resource_list(name);
    if (path == root) {
      Json entry = group_entry(name);
      entry.update({{"kind", "APIGroup"}, {"apiVersion", "v1"}});
      return entry;
    }
  }
  return std::nullopt;
}

std::optional<Json> openapi(std::string_view path, const std::string& git_version) {
  if (path == "/openapi/v2") return openapi_v2(git_version);
  std::set<std::string> stored;
  for (const auto& info : resource_table()) stored.insert(info.group);
  Json paths = Json::object();
  for (const auto& group : stored) {
    const std::string name = group.empty() ? std::string("api/v1") : "apis/" + group + "/v1";
    std::string url = "/openapi/v3/" + name;
    if (path == url) return openapi_document(group, git_version);
    url.append("?hash=").append(git_version);
    paths[name] = {{"serverRelativeURL", std::move(url)}};
  }
  if (path == "/openapi/v3") return Json{{"paths", std::move(paths)}};
  return std::nullopt;
}

}  // namespace lpp::devcluster
