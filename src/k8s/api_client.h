// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/projection.h"
#include "k8s/resource.h"
#include "k8s/transport.h"
#include "k8s/value_tree.h"

namespace lpp::k8s {

class RateLimiter;

struct ListOptions {
  std::string label_selector{};
  std::string field_selector{};
  int limit = 0;                   // 0 = no paging
  std::string continue_token{};    // when set, resource_version is not sent
  std::string resource_version{};  // "" = consistent read, "0" = any cached state
  bool metadata_only = false;      // items are PartialObjectMetadata
  Projection projection{};         // of the items of list_each(); with one they may be protobuf
};

struct WatchOptions {
  std::string label_selector{};
  std::string field_selector{};
  std::string resource_version{};
  std::chrono::seconds timeout{300};  // the server ends the watch after this
  bool metadata_only = false;
  bool protobuf = false;  // frames may be protobuf: for read_frame()
};

struct DeleteOptions {
  std::string uid{};               // precondition; "" = none
  std::string resource_version{};  // precondition; "" = none
  std::optional<int> grace_period_seconds{};
};

enum class PatchType { kMerge, kStrategicMerge, kJson };

/// What a write is answered with: the object, or only its name, namespace, UID and resource
/// version, which spares both sides most of the work.
enum class Answer { kObject, kIdentity };

/// What a page of a list says beside its items.
struct ListPage {
  std::string resource_version{};
  std::string continue_token{};  // "" = the last page
  std::size_t items = 0;
  std::size_t bytes = 0;  // of the answer
};

/// Of a write: the object is gone, or another one or in another version by now. A cache will show
/// it.
inline bool is_stale(const Error& error) {
  return error.is(ErrorCode::kConflict) || error.is(ErrorCode::kNotFound);
}

/// Typed verbs of the Kubernetes API over a Transport. Thread-safe; owns nothing it is given.
/// Objects that are returned have no metadata.managedFields.
/// Every call has a deadline (10 s, lists 30 s, retries included) and every failure is an Error
/// whose code says what to do; a Status body's reason, message and Retry-After are kept in it.
/// Retries: 429 and 5xx that carry Retry-After are repeated for any verb while the deadline allows;
/// cut connections are repeated for GET only (rule C5.3). kTimeout and kUnavailable on a
/// write mean that it may have been applied. A version that the server has not reached yet (504,
/// cause ResourceVersionTooLarge) is kExpired with that reason: both need a list without a version.
class ApiClient {
 public:
  struct Options {
    std::chrono::milliseconds call_timeout{10'000};
    std::stop_token stop{};  // ends every call: the process is shutting down for good
    /// nullptr = no client-side throttle; watches are exempt. Calls take their turn for the
    /// namespace that their thread works for (base/on_behalf_of.h).
    RateLimiter* rate_limiter = nullptr;
    std::chrono::milliseconds list_timeout{30'000};  // of lists, which move more bytes
  };

  ApiClient(Transport& transport, Clock& clock, Options options);

  const Options& options() const { return options_; }
  /// A client over the same transport and clock with other options, e.g. a shorter time limit or an
  /// own stop token.
  ApiClient with(Options options) const { return {transport_, clock_, std::move(options)}; }

  Result<nlohmann::json> get(const Resource& resource, const ObjectKey& key);
  Result<nlohmann::json> list(const Resource& resource, std::string_view ns,
                              const ListOptions& options);
  /// One page of a list; its items go to `on_item` one by one while the answer arrives, and no more
  /// than one is held. After an Error that came in the middle some have been delivered; then it is
  /// not repeated here.
  Result<ListPage> list_each(const Resource& resource, std::string_view ns,
                             const ListOptions& options, const std::function<void(Value)>& on_item);
  Result<nlohmann::json> create(const Resource& resource, std::string_view ns,
                                const nlohmann::json& object, Answer answer = Answer::kObject);
  Result<nlohmann::json> update(const Resource& resource, const ObjectKey& key,
                                const nlohmann::json& object, std::string_view subresource = {});
  Result<nlohmann::json> patch(const Resource& resource, const ObjectKey& key, PatchType type,
                               const nlohmann::json& patch, std::string_view subresource = {},
                               Answer answer = Answer::kObject);
  Result<void> remove(const Resource& resource, const ObjectKey& key,
                      const DeleteOptions& options = {});

  /// The last lines of a container's log, bounded in bytes.
  Result<std::string> pod_log(const ObjectKey& pod, std::string_view container, int tail_lines,
                              int limit_bytes);

  /// The statistics of a node, from its kubelet through the API server.
  Result<nlohmann::json> kubelet_summary(std::string_view node);

  /// A JSON object that a pod serves at that port and path, through the API server.
  Result<nlohmann::json> pod_page(const ObjectKey& pod, int port, std::string_view path);

  /// One watch request; `on_frame` receives each frame until it returns false, the server ends the
  /// watch (ok), or an error occurs. The stop token ends it in milliseconds.
  Result<void> watch(const Resource& resource, std::string_view ns, const WatchOptions& options,
                     const std::function<bool(std::string_view)>& on_frame,
                     const std::stop_token& stop);

 private:
  struct BodySink;

  Result<nlohmann::json> page_behind(std::string target, std::string_view whose);
  Result<Response> list_page(const Resource& resource, std::string_view ns,
                             const ListOptions& options, const BodySink* body = nullptr);
  /// A 2xx answer, or the Error of the last try.
  Result<Response> call(Request request, std::chrono::milliseconds timeout,
                        const BodySink* body = nullptr);

  Transport& transport_;
  Clock& clock_;
  const Options options_;
};

/// The Error for an HTTP answer that is not 2xx; understands Status bodies (JSON or protobuf),
/// plain text and HTML.
Error error_from_response(const Response& response);

}  // namespace lpp::k8s
