// SPDX-License-Identifier: Apache-2.0
#include "k8s/api_client.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json_extent.h"
#include "base/log.h"
#include "base/on_behalf_of.h"
#include "base/strings.h"
#include "k8s/frame_splitter.h"
#include "k8s/json_reader.h"
#include "k8s/json_writer.h"
#include "k8s/list_reader.h"
#include "k8s/object_reader.h"
#include "k8s/rate_limiter.h"
#include "k8s/request_parts.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr int kMaxRetries = 10;    // of answers with Retry-After
constexpr int kMaxCutRetries = 3;  // of reads whose connection was cut
constexpr std::chrono::seconds kCutRetryWait{1};
// The server ends a watch itself; only a dead peer stays silent longer than that.
constexpr std::chrono::seconds kWatchIdleMargin{5};

bool succeeded(const Response& response) { return response.status >= 200 && response.status < 300; }

constexpr auto kIdentityMeta =
    std::to_array<ReadField>({{"name", 1}, {"namespace", 3}, {"uid", 5}, {"resourceVersion", 6}});
constexpr auto kIdentityFields =
    std::to_array<ReadField>({{"metadata", 1, FieldType::kObject, kIdentityMeta}});

Request write_request(std::string method, std::string target, const json& body,
                      std::string content_type = "application/json") {
  return Request{.method = std::move(method),
                 .target = std::move(target),
                 .body = write_json(body),
                 .content_type = std::move(content_type)};
}

Error not_json(std::string_view method, std::string_view target, const Response& response) {
  return Error{.code = ErrorCode::kInternal,
               .message = fmt::format("{} {}: the answer is not a JSON object: {}", method, target,
                                      log::quoted(truncate_utf8(response.body, 100))),
               .http_status = response.status};
}

Result<json> parse_object(const Request& request, const Result<Response>& result,
                          Answer answer = Answer::kObject) {
  if (!result.ok()) return result.error();
  ValueTree tree;
  json object = answer == Answer::kIdentity
                    ? to_json(read_object(result->body, kIdentityFields, tree))
                    : read_json(result->body);
  if (object.is_object()) return object;
  return not_json(request.method, request.target, *result);
}

/// Jitter keeps clients that were refused together from coming back together.
Duration with_jitter(Duration wait) {
  const auto extra = std::chrono::duration<double, std::nano>(
      random_unit() * (0.2 * static_cast<double>(wait.count()) + 5e7));
  return wait + std::chrono::duration_cast<Duration>(extra);
}

/// How long to wait before this call is repeated; nothing when it must not be (rule C5.3).
std::optional<Duration> retry_wait(const Request& request, const Result<Response>& result,
                                   int retries) {
  if (!result.ok()) {
    const Error& error = result.error();
    const bool cut = error.is(ErrorCode::kUnavailable) && error.reason != kConnectFailed;
    if (!cut || request.method != "GET" || retries >= kMaxCutRetries) return std::nullopt;
    return with_jitter(kCutRetryWait);
  }
  const bool asked = result->retry_after && (result->status == 429 || result->status >= 500);
  if (!asked || retries >= kMaxRetries) return std::nullopt;
  if (error_from_response(*result).is(ErrorCode::kExpired)) return std::nullopt;
  return with_jitter(*result->retry_after);
}

}  // namespace

ApiClient::ApiClient(Transport& transport, Clock& clock, Options options)
    : transport_(transport), clock_(clock), options_(std::move(options)) {}

/// Takes the body of a 2xx answer while it arrives.
struct ApiClient::BodySink {
  ChunkSink sink;
  std::function<bool()> may_begin_again;  // after an answer that broke off
};

Result<Response> ApiClient::call(Request request, milliseconds timeout, const BodySink* body) {
  const TimePoint deadline = clock_.now() + timeout;
  for (int retries = 0;; ++retries) {
    if (options_.rate_limiter != nullptr &&
        !options_.rate_limiter->acquire(deadline, options_.stop, OnBehalfOf::current())) {
      if (options_.stop.stop_requested()) return cancelled();
      return Error{.code = ErrorCode::kTimeout,
                   .message = "held back by the client-side rate limit until the deadline"};
    }
    request.timeout = std::chrono::ceil<milliseconds>(deadline - clock_.now());
    if (request.timeout <= milliseconds::zero()) {
      return Error{.code = ErrorCode::kTimeout, .message = "no time left for the call"};
    }
    auto result = body == nullptr ? transport_.round_trip(request, options_.stop)
                                  : transport_.receive(request, body->sink, options_.stop);
    if (result.ok() && succeeded(*result)) return result;
    auto wait = retry_wait(request, result, retries);
    if (body != nullptr && !body->may_begin_again()) wait.reset();
    // An error now is worth more than a wait that cannot end before the deadline.
    if (!wait || clock_.now() + *wait >= deadline) {
      if (!result.ok()) return result;
      return error_from_response(*result);
    }
    if (!clock_.sleep_for(*wait, options_.stop)) return cancelled();
  }
}

Result<json> ApiClient::get(const Resource& resource, const ObjectKey& key) {
  const Request request{.method = "GET", .target = object_path(resource, key)};
  return parse_object(request, call(request, options_.call_timeout));
}

Result<Response> ApiClient::list_page(const Resource& resource, std::string_view ns,
                                      const ListOptions& options, const BodySink* body) {
  Query query;
  query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  if (options.limit > 0) query.add("limit", std::to_string(options.limit));
  // A further page carries its version in the continue token; both at once are refused (C3.2).
  query.add("continue", options.continue_token);
  if (options.continue_token.empty()) query.add("resourceVersion", options.resource_version);
  Request request{.method = "GET", .target = collection_path(resource, ns) + query.text()};
  request.accept =
      accepted(!options.projection.empty(), options.metadata_only ? kMetadataList : "");
  return call(std::move(request), std::max(options_.call_timeout, options_.list_timeout), body);
}

Result<json> ApiClient::list(const Resource& resource, std::string_view ns,
                             const ListOptions& options) {
  const auto answer = list_page(resource, ns, options);
  if (!answer.ok()) return answer.error();
  json list = read_json(answer->body);
  if (list.is_object()) return list;
  return not_json("list", resource.plural, *answer);
}

Result<ListPage> ApiClient::list_each(const Resource& resource, std::string_view ns,
                                      const ListOptions& options,
                                      const std::function<void(Value)>& on_item) {
  constexpr std::size_t kShown = 100;
  std::optional<ListReader> reader;
  std::string first;  // bytes, for the message that this is no list
  const auto begin = [&] {
    reader.emplace(options.projection, on_item);
    first.clear();
  };
  begin();
  const BodySink body{.sink =
                          [&](std::string_view chunk) {
                            first += chunk.substr(0, kShown - std::min(kShown, first.size()));
                            return reader->feed(chunk);
                          },
                      .may_begin_again =
                          [&] {
                            if (reader->items() > 0) return false;
                            begin();
                            return true;
                          }};
  auto answer = list_page(resource, ns, options, &body);
  if (!answer.ok()) return answer.error();
  const Value list = reader->finish();
  if (!list.is_object()) {
    answer->body = std::move(first);
    return not_json("list", resource.plural, *answer);
  }
  const Value metadata = list.find("metadata");
  ListPage page{.resource_version = std::string(metadata.find("resourceVersion").text()),
                .continue_token = std::string(metadata.find("continue").text()),
                .items = reader->items(),
                .bytes = reader->bytes()};
  // Without a version there is nothing to watch from, and "0" would be another kind of watch.
  if (page.resource_version.empty() || page.resource_version == "0") {
    return Error{.message = "the answer is not a list with a resourceVersion"};
  }
  return page;
}

Result<json> ApiClient::create(const Resource& resource, std::string_view ns, const json& object,
                               Answer answer) {
  Request request = write_request("POST", collection_path(resource, ns), object);
  if (answer == Answer::kIdentity) request.accept = accepted(true, kMetadataObject);
  return parse_object(request, call(request, options_.call_timeout), answer);
}

Result<json> ApiClient::update(const Resource& resource, const ObjectKey& key, const json& object,
                               std::string_view subresource) {
  const Request request = write_request("PUT", object_path(resource, key, subresource), object);
  return parse_object(request, call(request, options_.call_timeout));
}

Result<json> ApiClient::patch(const Resource& resource, const ObjectKey& key, PatchType type,
                              const json& patch, std::string_view subresource, Answer answer) {
  Request request = write_request("PATCH", object_path(resource, key, subresource), patch,
                                  std::string(content_type_of(type)));
  if (answer == Answer::kIdentity) request.accept = accepted(true, kMetadataObject);
  return parse_object(request, call(request, options_.call_timeout), answer);
}

Result<void> ApiClient::remove(const Resource& resource, const ObjectKey& key,
                               const DeleteOptions& options) {
  Request request{.method = "DELETE", .target = object_path(resource, key)};
  // Nobody looks at the answer: a short one will do.
  request.accept = accepted(true, kMetadataObject);
  json preconditions = json::object();
  if (!options.uid.empty()) preconditions["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    preconditions["resourceVersion"] = options.resource_version;
  }
  if (!preconditions.empty() || options.grace_period_seconds) {
    json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
    if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
    if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
    request.body = write_json(body);
    request.content_type = "application/json";
  }
  const auto result = call(std::move(request), options_.call_timeout);
  if (!result.ok()) return result.error();
  return {};
}

Result<std::string> ApiClient::pod_log(const ObjectKey& pod, std::string_view container,
                                       int tail_lines, int limit_bytes) {
  Query query;
  query.add("container", container)
      .add("tailLines", std::to_string(tail_lines))
      .add("limitBytes", std::to_string(limit_bytes));
  Request request{.method = "GET", .target = object_path(kPods, pod, "log") + query.text()};
  request.accept = "*/*";
  auto result = call(std::move(request), options_.call_timeout);
  if (!result.ok()) return std::move(result).error();
  std::string text = std::move(result->body);
  const auto limit = static_cast<std::size_t>(std::max(limit_bytes, 0));
  if (text.size() > limit) text.erase(0, text.size() - limit);
  return text;
}

Result<json> ApiClient::kubelet_summary(std::string_view node) {
  const ObjectKey key{"", std::string(node)};
  return page_behind(object_path(kNodes, key, "proxy") + "/stats/summary", "the kubelet");
}

Result<json> ApiClient::pod_page(const ObjectKey& pod, int port, std::string_view path) {
  const ObjectKey key{pod.ns, fmt::format("{}:{}", pod.name, port)};
  return page_behind(object_path(kPods, key, "proxy") + std::string(path), "the pod");
}

Result<json> ApiClient::page_behind(std::string target, std::string_view whose) {
  Request request{.method = "GET", .target = std::move(target)};
  request.accept = "application/json";
  auto answer = call(std::move(request), options_.call_timeout);
  if (!answer.ok()) return answer.error();
  constexpr std::size_t kMaxDepth = 32;
  const bool deep = first_json_value(answer->body, kMaxDepth).too_deep_at.has_value();
  json page = deep ? json() : json::parse(answer->body, nullptr, false);
  if (!page.is_object()) {
    return Error{.message = fmt::format("{}'s answer is not a JSON object", whose)};
  }
  return page;
}

Result<void> ApiClient::watch(const Resource& resource, std::string_view ns,
                              const WatchOptions& options,
                              const std::function<bool(std::string_view)>& on_frame,
                              const std::stop_token& stop) {
  Query query;
  query.add("watch", "true")
      .add("allowWatchBookmarks", "true")
      .add("timeoutSeconds", std::to_string(options.timeout.count()))
      .add("resourceVersion", options.resource_version)
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector);
  Request request{.method = "GET", .target = collection_path(resource, ns) + query.text()};
  request.accept = accepted(options.protobuf, options.metadata_only ? kMetadataObject : "");
  request.timeout = options_.call_timeout;
  request.idle_timeout = options.timeout + kWatchIdleMargin;

  // The caller's stop and the process's stop end the stream alike.
  std::stop_source either;
  const auto forward = [&either] { either.request_stop(); };
  const std::stop_callback on_caller_stop(stop, forward);
  const std::stop_callback on_process_stop(options_.stop, forward);

  FrameSplitter frames;
  auto outcome = FrameSplitter::Outcome::kMore;
  const auto sink = [&](std::string_view chunk) {
    outcome = frames.feed(chunk, on_frame);
    return outcome == FrameSplitter::Outcome::kMore;
  };
  const auto result = transport_.stream(request, sink, either.get_token());
  if (outcome == FrameSplitter::Outcome::kTooLong) {
    return Error{.code = ErrorCode::kInternal,
                 .message = fmt::format("watch {}: a frame is longer than {} MiB", request.target,
                                        FrameSplitter::kMaxFrame >> 20U)};
  }
  if (!result.ok()) return result.error();
  if (!succeeded(*result)) return error_from_response(*result);
  if (outcome == FrameSplitter::Outcome::kStopped || trim(frames.rest()).empty()) return {};
  // A last line may lack its end; half a frame means that the stream was cut.
  if (json::accept(frames.rest())) {
    on_frame(frames.rest());
    return {};
  }
  return Error{.code = ErrorCode::kUnavailable,
               .message = "watch " + request.target + ": the stream ended inside a frame"};
}

}  // namespace lpp::k8s
