// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "devcluster/apiserver/api_handler.h"
#include "devcluster/apiserver/protobuf_writer.h"
#include "devcluster/apiserver/status.h"
#include "devcluster/apiserver/table.h"

namespace lpp::devcluster {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// How often a quiet watch looks whether its client is still there.
constexpr std::chrono::milliseconds kLook{250};
/// A last bookmark comes this long before the end of a watch.
constexpr std::chrono::seconds kBeforeEnd{2};

std::string_view type_name(WatchEventType type) {
  switch (type) {
    case WatchEventType::kAdded: return "ADDED";
    case WatchEventType::kModified: return "MODIFIED";
    case WatchEventType::kDeleted: return "DELETED";
    case WatchEventType::kBookmark: return "BOOKMARK";
    case WatchEventType::kError: break;
  }
  return "ERROR";
}

std::chrono::seconds timeout_of(const HttpRequest& request, std::chrono::seconds fallback) {
  const std::string text = request.param("timeoutSeconds");
  long seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return seconds > 0 ? std::chrono::seconds(seconds) : fallback;
}

/// Why the options of a watch contradict each other; nothing when they do not.
FieldErrors watch_option_errors(const HttpRequest& request) {
  FieldErrors errors;
  const std::string match = request.param("resourceVersionMatch");
  if (request.has_param("sendInitialEvents")) {
    if (match != "NotOlderThan") {
      errors.push_back({.kind = FieldError::Kind::kForbidden,
                        .field = "resourceVersionMatch",
                        .detail = "sendInitialEvents requires setting resourceVersionMatch to "
                                  "NotOlderThan"});
    }
  } else if (!match.empty()) {
    errors.push_back({.kind = FieldError::Kind::kForbidden,
                      .field = "resourceVersionMatch",
                      .detail = "resourceVersionMatch is forbidden for watch unless "
                                "sendInitialEvents is provided"});
  }
  return errors;
}

}  // namespace

void ApiHandler::watch(Call& call, const std::vector<FaultAction>& later) {
  const auto refuse = [&](const Reply& reply) {
    Answer answer = plain(reply);
    if (reply.code == 504) answer.retry_after = std::chrono::seconds(1);
    record(call, reply.code);
    respond(call, answer);
  };
  if (call.wanted.shape == Shape::kUnsupported) {
    return refuse(make_status(406, "NotAcceptable",
                              "only the following media types are accepted: application/json, "
                              "application/json;stream=watch"));
  }
  if (!call.path.subresource.empty()) return refuse(method_not_allowed());
  const auto errors = watch_option_errors(call.request);
  if (!errors.empty()) return refuse(invalid_kind("meta.k8s.io", "ListOptions", "", errors));

  const auto selection = list_options(call.request, call.path);
  auto reply =
      registry_.watch({.resources = {call.path.info->plural},
                       .ns = selection.ns,
                       .label_selector = selection.label_selector,
                       .field_selector = selection.field_selector,
                       .resource_version = selection.resource_version,
                       .send_initial_events = is_true(call.request.param("sendInitialEvents"))});
  if (!reply.ok()) return refuse({reply.code, reply.status});
  record(call, 200);
  if (!call.exchange.begin_chunks(
          200, {{"Content-Type",
                 call.wanted.protobuf ? std::string(kProtobufWatchType) : "application/json"},
                {"Cache-Control", "no-cache"}})) {
    return;
  }
  if (!strike_after(call, later)) return;
  {
    const MutexLock lock(mutex_);
    watches_.push_back(reply.watch.get());
  }
  stream_events(call, *reply.watch);
  const MutexLock lock(mutex_);
  std::erase(watches_, reply.watch.get());
}

void ApiHandler::stream_events(Call& call, Watch& watch) {
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + timeout_of(call.request, options_.watch_timeout);
  const bool bookmarks = is_true(call.request.param("allowWatchBookmarks"));
  const SteadyTime last_bookmark = end - kBeforeEnd;
  auto next_bookmark = start + options_.bookmark_period;
  if (last_bookmark > start) next_bookmark = std::min(next_bookmark, last_bookmark);
  while (!call.exchange.gone()) {
    const auto now = std::chrono::steady_clock::now();
    if (watch.ended()) break;
    // Past its end there is no wait, but what has come by then is told.
    auto wait = std::clamp<std::chrono::nanoseconds>(end - now, std::chrono::nanoseconds(0), kLook);
    if (bookmarks) {
      wait = std::clamp<std::chrono::nanoseconds>(next_bookmark - now, std::chrono::nanoseconds(0),
                                                  wait);
    }
    const auto event = watch.next(std::chrono::ceil<std::chrono::milliseconds>(wait));
    if (event) {
      if (event->type == WatchEventType::kBookmark && !bookmarks) continue;
      if (!send_event(call, *event)) return;
      continue;
    }
    if (bookmarks && std::chrono::steady_clock::now() >= next_bookmark && !watch.ended()) {
      if (!call.exchange.chunk(bookmark(call, watch.resource_version(), false))) return;
      next_bookmark += options_.bookmark_period;
      if (next_bookmark > last_bookmark && std::chrono::steady_clock::now() < last_bookmark) {
        next_bookmark = last_bookmark;
      }
    }
    if (now >= end) break;
  }
  if (!call.exchange.gone()) call.exchange.end_chunks();
}

bool ApiHandler::send_event(Call& call, const WatchEvent& event) {
  using Kind = FaultAction::Kind;
  if (event.type == WatchEventType::kError) {
    call.exchange.chunk(frame(call, "ERROR", *event.object));
    call.exchange.end_chunks();
    return false;
  }
  if (event.type == WatchEventType::kBookmark) {
    return call.exchange.chunk(bookmark(call, event.resource_version, event.initial_events_end));
  }
  const std::string text = frame(call, event);
  Operation operation = call.operation;
  operation.ns = namespace_of(*event.object);
  operation.name = name_of(*event.object);
  for (const auto& action : faults_.decide_event(operation)) {
    switch (action.kind) {
      case Kind::kLoseEvent: return true;
      case Kind::kDuplicateEvent:
        if (!call.exchange.chunk(text)) return false;
        break;
      case Kind::kTruncateEvent:
        call.exchange.chunk(std::string_view(text).substr(0, action.bytes));
        call.exchange.cut();
        return false;
      case Kind::kStallEvent: call.exchange.wait_for_close(); return false;
      case Kind::kErrorEvent: {
        const Reply status = action.code == 410 ? watch_expired(0, event.resource_version)
                                                : fault_status(action.code, "", "", std::nullopt);
        call.exchange.chunk(frame(call, "ERROR", *status.body));
        call.exchange.end_chunks();
        return false;
      }
      default: break;
    }
  }
  return call.exchange.chunk(text);
}

std::string ApiHandler::frame(const Call& call, std::string_view type, const Json& object) {
  if (call.wanted.protobuf) return protobuf_frame(type, object);
  return R"({"type":")" + std::string(type) + R"(","object":)" + dump(object) + "}\n";
}

std::string ApiHandler::frame(const Call& call, const WatchEvent& event) const {
  const auto type = type_name(event.type);
  if (call.wanted.shape == Shape::kMetadata) return frame(call, type, metadata_only(*event.object));
  if (call.wanted.shape != Shape::kTable) return frame(call, type, *event.object);
  Json table = make_table(*call.path.info, {event.object},
                          call.request.param("includeObject") == "Object" ? TableObjects::kObject
                                                                          : TableObjects::kMetadata,
                          std::chrono::system_clock::now());
  table["metadata"]["resourceVersion"] = text_at(*event.object, {"metadata", "resourceVersion"});
  return frame(call, type, table);
}

std::string ApiHandler::bookmark(const Call& call, std::uint64_t version, bool initial_end) const {
  Json metadata = {{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}};
  if (initial_end) metadata["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  Json object = {{"kind", call.path.info->kind}, {"apiVersion", call.path.info->api_version()}};
  if (call.wanted.shape == Shape::kMetadata) {
    object = {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}};
  } else if (call.wanted.shape == Shape::kTable) {
    object = make_table(*call.path.info, {}, TableObjects::kNone, {});
  }
  object["metadata"] = std::move(metadata);
  return frame(call, "BOOKMARK", object);
}

}  // namespace lpp::devcluster
