// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/status.h"

#include "devcluster/json_names.h"
#include "harness/api_path.h"

namespace lpp::devcluster {
namespace {

Reply failure(int code, std::string_view reason, std::string_view message, Json details) {
  Json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
                 {"status", "Failure"}, {"message", message}, {"code", code}};
  if (!reason.empty()) status["reason"] = reason;
  if (!details.is_null()) status["details"] = std::move(details);
  return Reply{code, std::make_shared<const Json>(std::move(status))};
}

Json details_of(const ResourceInfo& info, std::string_view name) {
  Json details = {{"kind", info.plural}};
  if (!name.empty()) details["name"] = name;
  if (!info.group.empty()) details["group"] = info.group;
  return details;
}

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string_view cause_reason(FieldError::Kind kind) {
  switch (kind) {
    case FieldError::Kind::kRequired: return "FieldValueRequired";
    case FieldError::Kind::kForbidden: return "FieldValueForbidden";
    case FieldError::Kind::kNotSupported: return "FieldValueNotSupported";
    case FieldError::Kind::kTooLong: return "FieldValueTooLong";
    case FieldError::Kind::kDuplicate: return "FieldValueDuplicate";
    case FieldError::Kind::kInvalid: break;
  }
  return "FieldValueInvalid";
}

}  // namespace

std::string FieldError::message() const {
  const std::string tail = detail.empty() ? std::string() : ": " + detail;
  switch (kind) {
    case Kind::kRequired: return "Required value" + tail;
    case Kind::kForbidden: return "Forbidden" + tail;
    case Kind::kNotSupported: return "Unsupported value: " + in_quotes(value) + tail;
    case Kind::kTooLong: return "Too long" + tail;
    case Kind::kDuplicate: return "Duplicate value: " + in_quotes(value) + tail;
    case Kind::kInvalid: break;
  }
  return "Invalid value: " + in_quotes(value) + tail;
}

Reply make_status(int code, std::string_view reason, std::string_view message) {
  return failure(code, reason, message, nullptr);
}

Reply not_found(const ResourceInfo& info, std::string_view name) {
  return failure(404, "NotFound", info.group_resource() + " " + in_quotes(name) + " not found",
                 details_of(info, name));
}

Reply already_exists(const ResourceInfo& info, std::string_view name) {
  return failure(409, "AlreadyExists",
                 info.group_resource() + " " + in_quotes(name) + " already exists",
                 details_of(info, name));
}

Reply conflict(const ResourceInfo& info, std::string_view name, std::string_view why) {
  return failure(409, "Conflict",
                 "Operation cannot be fulfilled on " + info.group_resource() + " " +
                     in_quotes(name) + ": " + std::string(why),
                 details_of(info, name));
}

Reply modified_conflict(const ResourceInfo& info, std::string_view name) {
  return conflict(info, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Reply bad_request(std::string_view message) { return failure(400, "BadRequest", message, nullptr); }

Reply forbidden(const ResourceInfo& info, std::string_view name, std::string_view why) {
  return failure(
      403, "Forbidden",
      info.group_resource() + " " + in_quotes(name) + " is forbidden: " + std::string(why),
      details_of(info, name));
}

Reply namespace_terminating(const ResourceInfo& info, std::string_view name, std::string_view ns) {
  Json details = details_of(info, name);
  details["causes"] =
      Json::array({{{"reason", "NamespaceTerminating"},
                    {"message", "namespace " + std::string(ns) + " is being terminated"},
                    {"field", "metadata.namespace"}}});
  return failure(403, "Forbidden",
                 info.group_resource() + " " + in_quotes(name) +
                     " is forbidden: unable to create new content in namespace " + std::string(ns) +
                     " because it is being terminated",
                 std::move(details));
}

Reply invalid_object(const ResourceInfo& info, std::string_view name, const FieldErrors& errors) {
  return invalid_kind(info.group, info.kind, name, errors);
}

Reply invalid_kind(std::string_view group, std::string_view kind, std::string_view name,
                   const FieldErrors& errors) {
  Json causes = Json::array();
  std::string text;
  for (const auto& error : errors) {
    const std::string message = error.message();
    causes.push_back(
        {{"reason", cause_reason(error.kind)}, {"message", message}, {"field", error.field}});
    if (!text.empty()) text += ", ";
    text += error.field + ": " + message;
  }
  if (errors.size() > 1) text = "[" + text + "]";
  Json details = {{"kind", kind}, {"causes", std::move(causes)}};
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  const std::string qualified =
      group.empty() ? std::string(kind) : std::string(kind) + "." + std::string(group);
  return failure(422, "Invalid", qualified + " " + in_quotes(name) + " is invalid: " + text,
                 std::move(details));
}

Reply unknown_resource() {
  return failure(404, "NotFound", "the server could not find the requested resource",
                 Json::object());
}

Reply method_not_allowed() {
  return failure(405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource", Json::object());
}

Reply expired(std::string_view message, std::string_view continue_token) {
  Reply reply = failure(410, "Expired", message, nullptr);
  if (!continue_token.empty()) {
    Json status = *reply.body;
    status["metadata"]["continue"] = continue_token;
    reply.body = std::make_shared<const Json>(std::move(status));
  }
  return reply;
}

Reply watch_expired(std::uint64_t wanted, std::uint64_t oldest) {
  return expired("too old resource version: " + std::to_string(wanted) + " (" +
                 std::to_string(oldest) + ")");
}

Reply version_too_large(std::uint64_t wanted, std::uint64_t current) {
  Json details = {{"causes", Json::array({{{"reason", "ResourceVersionTooLarge"},
                                           {"message", "Too large resource version"}}})},
                  {"retryAfterSeconds", 1}};
  return failure(504, "Timeout",
                 "Timeout: Too large resource version: " + std::to_string(wanted) +
                     ", current: " + std::to_string(current),
                 std::move(details));
}

Reply fault_status(int code, std::string_view reason, std::string_view message,
                   std::optional<std::chrono::seconds> retry_after) {
  Json details;
  if (retry_after) details = {{"retryAfterSeconds", retry_after->count()}};
  return failure(code, reason.empty() ? testing::status_reason(code) : reason,
                 message.empty() ? std::string("fault asked for by a test") : std::string(message),
                 std::move(details));
}

Reply deleted_status(const ResourceInfo& info, std::string_view name, std::string_view uid) {
  Json details = details_of(info, name);
  details["uid"] = uid;
  Json status = {{"kind", "Status"},
                 {"apiVersion", "v1"},
                 {"metadata", Json::object()},
                 {"status", "Success"},
                 {"details", std::move(details)}};
  return Reply{200, std::make_shared<const Json>(std::move(status))};
}

std::string Reply::reason() const {
  return ok() || body == nullptr ? std::string() : text_at(*body, {"reason"});
}

std::string Reply::message() const {
  return ok() || body == nullptr ? std::string() : text_at(*body, {"message"});
}

}  // namespace lpp::devcluster
