// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/api_request.h"

#include <charconv>
#include <cstdint>

#include "base/strings.h"
#include "devcluster/apiserver/protobuf.h"
#include "devcluster/apiserver/protobuf_writer.h"
#include "harness/api_path.h"

namespace lpp::devcluster {
namespace {

std::int64_t to_number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// One of the types that a client accepts.
struct Range {
  Shape shape = Shape::kUnsupported;
  bool protobuf = false;
};

Range parse_range(std::string_view text) {
  const auto parts = split(text, ';');
  const auto type = trim(parts.front());
  const bool protobuf = is_protobuf(type);
  if (!protobuf && type != "application/json" && type != "*/*" && type != "application/*") {
    return {};
  }
  for (const auto part : parts) {
    const auto parameter = trim(part);
    if (!parameter.starts_with("as=")) continue;
    const auto as = parameter.substr(3);
    if (as == "Table" && !protobuf) return {.shape = Shape::kTable};
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
      return {.shape = Shape::kMetadata, .protobuf = protobuf};
    }
    return {};
  }
  return {.shape = Shape::kObject, .protobuf = protobuf};
}

}  // namespace

ApiPath parse_api_path(const std::string& path) {
  const testing::ApiPathParts parts = testing::split_api_path(path);
  ApiPath out{.ns = parts.ns, .is_api = parts.is_api};
  const auto* info = find_resource(parts.group, parts.version, parts.resource);
  if (info == nullptr) return out;
  const bool proxied =
      (info->plural == "nodes" || info->plural == "pods") && parts.subresource == "proxy";
  if (!parts.rest.empty() && !proxied) return out;
  for (const std::string& part : parts.rest) {
    out.proxied += (out.proxied.empty() ? "" : "/") + part;
  }
  const bool inside = !parts.ns.empty();
  if (inside && !info->namespaced) return out;
  out.name = parts.name;
  out.subresource = parts.subresource;
  if (!out.name.empty() && info->namespaced && !inside) return out;
  out.info = info;
  return out;
}

std::string verb_of(const HttpRequest& request, const ApiPath& path) {
  const bool named = !path.name.empty();
  if (request.method == "GET" || request.method == "HEAD") {
    if (is_true(request.param("watch"))) return "watch";
    return named ? "get" : "list";
  }
  if (request.method == "POST") return named == path.subresource.empty() ? "" : "create";
  if (request.method == "PUT") return named ? "update" : "";
  if (request.method == "PATCH") return named ? "patch" : "";
  if (request.method == "DELETE") return named ? "delete" : "deletecollection";
  return {};
}

Wanted wanted_of(const std::string& accept, std::string_view kind, bool protobuf) {
  if (trim(accept).empty()) return {};
  Wanted wanted{.shape = Shape::kUnsupported};
  bool status_found = false;
  for (const auto text : split(accept, ',')) {
    const Range range = parse_range(text);
    if (range.protobuf && !protobuf) continue;
    if (range.shape == Shape::kObject && !status_found) {
      status_found = true;
      wanted.status_protobuf = range.protobuf;
    }
    const bool possible =
        !range.protobuf || range.shape == Shape::kMetadata || is_written_as_protobuf(kind);
    if (wanted.shape == Shape::kUnsupported && possible) {
      wanted.shape = range.shape;
      wanted.protobuf = range.protobuf;
    }
  }
  return wanted;
}

bool is_true(const std::string& value) { return value == "true" || value == "1"; }

ListOptions list_options(const HttpRequest& request, const ApiPath& path) {
  ListOptions options;
  options.ns = path.ns;
  options.label_selector = request.param("labelSelector");
  options.field_selector = request.param("fieldSelector");
  options.limit = to_number(request.param("limit"));
  options.continue_token = request.param("continue");
  options.resource_version = request.param("resourceVersion");
  options.resource_version_match = request.param("resourceVersionMatch");
  if (!path.name.empty()) options.field_selector = "metadata.name=" + path.name;
  return options;
}

Json request_body(const HttpRequest& request) {
  auto body = is_protobuf(media_type(request.header("content-type")))
                  ? decode_protobuf(request.body)
                  : parse_json(request.body);
  return body ? std::move(*body) : Json();
}

std::optional<DeleteOptions> delete_options(const HttpRequest& request) {
  DeleteOptions options;
  const Json body = trim(request.body).empty() ? Json::object() : request_body(request);
  if (!body.is_object()) return std::nullopt;
  auto grace = number_at(body, {"gracePeriodSeconds"});
  const std::string grace_text = request.param("gracePeriodSeconds");
  if (!grace && !grace_text.empty()) grace = to_number(grace_text);
  if (grace) options.grace_period = std::chrono::seconds(*grace);
  options.uid_precondition = text_at(body, {"preconditions", "uid"});
  options.resource_version_precondition = text_at(body, {"preconditions", "resourceVersion"});
  options.dry_run = request.param("dryRun") == "All" || !is_blank(child(body, "dryRun"));
  return options;
}

std::optional<PatchType> patch_type(const std::string& content_type) {
  const std::string type = media_type(content_type);
  if (type == "application/json-patch+json") return PatchType::kJson;
  if (type == "application/merge-patch+json") return PatchType::kMerge;
  if (type == "application/strategic-merge-patch+json") return PatchType::kStrategicMerge;
  if (type == "application/apply-patch+yaml") return PatchType::kApply;
  return std::nullopt;
}

std::string media_type(const std::string& content_type) {
  return to_lower(trim(split(content_type, ';').front()));
}

}  // namespace lpp::devcluster
