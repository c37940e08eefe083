// SPDX-License-Identifier: Apache-2.0
// What the verbs do, and the shape in which the client wants the answer.

#include "devcluster/apiserver/api_handler.h"
#include "devcluster/apiserver/protobuf_writer.h"
#include "devcluster/apiserver/status.h"
#include "devcluster/apiserver/table.h"

namespace lpp::devcluster {
namespace {

WriteOptions write_options(const HttpRequest& request, const std::string& subresource) {
  return {.subresource = subresource,
          .dry_run = request.param("dryRun") == "All",
          .field_manager = request.param("fieldManager")};
}

/// A list's text: items as they are stored, without kind and apiVersion.
std::string list_text(const ResourceInfo& info, const ListReply& reply, const Json& metadata,
                      bool only_metadata) {
  const std::string kind = only_metadata ? "PartialObjectMetadata" : info.kind;
  const std::string version = only_metadata ? "meta.k8s.io/v1" : info.api_version();
  std::string text = R"({"kind":")" + kind + R"(List","apiVersion":")" + version +
                     R"(","metadata":)" + dump(metadata) + R"(,"items":[)";
  bool first_item = true;
  for (const auto& object : reply.items) {
    text += first_item ? "{" : ",{";
    first_item = false;
    bool first_member = true;
    for (const auto& [key, value] : object->items()) {
      if (key == "kind" || key == "apiVersion") continue;
      if (only_metadata && key != "metadata") continue;
      if (!first_member) text += ',';
      first_member = false;
      text += dump(key) + ":" + dump(value);
    }
    text += '}';
  }
  return text + "]}\n";
}

Json list_metadata(const ListReply& reply) {
  Json metadata = {{"resourceVersion", reply.resource_version}};
  if (!reply.continue_token.empty()) metadata["continue"] = reply.continue_token;
  if (reply.remaining) metadata["remainingItemCount"] = *reply.remaining;
  return metadata;
}

TableObjects table_objects(const HttpRequest& request) {
  const std::string include = request.param("includeObject");
  if (include == "None") return TableObjects::kNone;
  return include == "Object" ? TableObjects::kObject : TableObjects::kMetadata;
}

}  // namespace

ApiHandler::Answer ApiHandler::run_verb(Call& call) {
  if (call.wanted.shape == Shape::kUnsupported) {
    return plain(make_status(406, "NotAcceptable",
                             "only the following media types are accepted: application/json"));
  }
  const Reply body_check = check_body(call);
  if (!body_check.ok()) return plain(body_check);
  const std::string& sub = call.path.subresource;
  const bool stored = sub.empty() || (sub == "status" && call.path.info->has_status);
  if (call.verb == "create") return sub.empty() ? create(call) : create_subresource(call);
  if (sub == "proxy" && call.verb == "get") {
    return call.path.info->namespaced ? pod_proxy(call) : node_proxy(call);
  }
  if (!stored) return plain(unknown_resource());
  if (call.verb == "get") return read(call);
  if (call.verb == "list") return list(call);
  if (call.verb == "patch") return patch(call);
  if (call.verb == "update") {
    return shaped(call, registry_.update({call.path.info->plural, call.path.ns, call.path.name},
                                         call.body, write_options(call.request, sub)));
  }
  const bool collection_ok = call.path.info->plural != "namespaces" || !call.path.name.empty();
  if (call.verb.starts_with("delete") && sub.empty() && collection_ok) return remove(call);
  return plain(method_not_allowed());
}

ApiHandler::Answer ApiHandler::read(Call& call) {
  return shaped(call, registry_.get({call.path.info->plural, call.path.ns, call.path.name}));
}

ApiHandler::Answer ApiHandler::list(Call& call) {
  const auto reply = registry_.list(call.path.info->plural, list_options(call.request, call.path));
  if (!reply.ok()) {
    Answer answer = plain({reply.code, reply.status});
    if (reply.code == 504) answer.retry_after = std::chrono::seconds(1);
    return answer;
  }
  const Json metadata = list_metadata(reply);
  if (call.wanted.shape == Shape::kTable) {
    Json table = make_table(*call.path.info, reply.items, table_objects(call.request),
                            std::chrono::system_clock::now());
    table["metadata"] = metadata;
    return Answer{.body = dump(table) + "\n"};
  }
  const bool only_metadata = call.wanted.shape == Shape::kMetadata;
  if (call.wanted.protobuf) {
    const auto& info = *call.path.info;
    auto bytes =
        only_metadata
            ? protobuf_list("PartialObjectMetadata", "meta.k8s.io/v1", metadata, reply.items)
            : protobuf_list(info.kind, info.api_version(), metadata, reply.items);
    if (bytes) return Answer{.body = *std::move(bytes), .content_type = std::string(kProtobufType)};
  }
  return Answer{.body = list_text(*call.path.info, reply, metadata, only_metadata)};
}

ApiHandler::Answer ApiHandler::create(Call& call) {
  const auto& info = *call.path.info;
  if (info.namespaced && call.path.ns.empty()) return plain(method_not_allowed());
  return shaped(call, registry_.create(info.plural, call.path.ns, call.body,
                                       write_options(call.request, "")));
}

ApiHandler::Answer ApiHandler::create_subresource(Call& call) {
  const auto& path = call.path;
  if (path.info->plural == "pods" && path.subresource == "binding") {
    const Reply reply =
        registry_.bind_pod(path.ns, path.name, text_at(call.body, {"target", "name"}));
    if (!reply.ok()) return plain(reply);
    Answer answer{.code = 201};
    answer.body =
        R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})";
    return answer;
  }
  if (path.info->plural == "serviceaccounts" && path.subresource == "token") {
    return request_token(call);
  }
  return plain(unknown_resource());
}

ApiHandler::Answer ApiHandler::patch(Call& call) {
  const auto type = *patch_type(call.request.header("content-type"));
  if (type == PatchType::kApply && call.request.param("fieldManager").empty()) {
    return plain(invalid_kind("meta.k8s.io", "PatchOptions", "",
                              {{.kind = FieldError::Kind::kRequired,
                                .field = "fieldManager",
                                .detail = "is required for apply patch"}}));
  }
  return shaped(
      call, registry_.patch({call.path.info->plural, call.path.ns, call.path.name}, type, call.body,
                            write_options(call.request, call.path.subresource)));
}

ApiHandler::Answer ApiHandler::remove(Call& call) {
  auto options = delete_options(call.request);
  if (!options) return plain(bad_request("the body of the request is no DeleteOptions"));
  const auto& path = call.path;
  if (!path.name.empty()) {
    options->mark_only = path.info->plural == "namespaces";
    const auto reply = registry_.remove({path.info->plural, path.ns, path.name}, *options);
    if (options->mark_only && !options->dry_run && reply.ok()) sweeper_.add(path.name);
    return shaped(call, reply);
  }
  const auto reply =
      registry_.remove_collection(path.info->plural, list_options(call.request, path), *options);
  if (!reply.ok()) return plain({reply.code, reply.status});
  return Answer{.body = list_text(*path.info, reply, list_metadata(reply), false)};
}

ApiHandler::Answer ApiHandler::shaped(const Call& call, const Reply& reply) const {
  if (!reply.ok() || text_at(*reply.body, {"kind"}) == "Status" ||
      call.wanted.shape == Shape::kObject) {
    return plain(reply);
  }
  if (call.wanted.shape == Shape::kMetadata) {
    return plain({reply.code, std::make_shared<const Json>(metadata_only(*reply.body))});
  }
  Answer answer{.code = reply.code};
  Json table = make_table(*call.path.info, {reply.body}, table_objects(call.request),
                          std::chrono::system_clock::now());
  table["metadata"]["resourceVersion"] = text_at(*reply.body, {"metadata", "resourceVersion"});
  answer.body = dump(table) + "\n";
  return answer;
}

ApiHandler::Answer ApiHandler::plain(const Reply& reply) {
  return Answer{.code = reply.code, .object = reply.body};
}

}  // namespace lpp::devcluster
