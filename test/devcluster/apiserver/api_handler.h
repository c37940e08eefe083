// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sync.h"
#include "devcluster/apiserver/api_request.h"
#include "devcluster/apiserver/namespace_sweeper.h"
#include "devcluster/apiserver/rbac.h"
#include "devcluster/apiserver/server.h"
#include "devcluster/apiserver/tokens.h"

namespace lpp::devcluster {

/// Answers requests: authentication, faults, routing, the verbs. One for the whole server; called
/// by all connection threads at once.
class ApiHandler {
 public:
  ApiHandler(Registry& registry, const ApiServer::Options& options, FaultRules& faults,
             RequestLog& requests, Tokens& tokens, Rbac& rbac, NamespaceSweeper& sweeper);

  void handle(Exchange& exchange);
  void set_log_source(LogSource source);
  void set_kubelets(KubeletSource source);
  void set_pod_pages(PodPageSource source);
  /// Ends the watches that run now.
  void stop_watches();

 private:
  /// One request with everything that was found out about it.
  struct Call {
    const HttpRequest& request;
    Exchange& exchange;
    ApiPath path;
    std::string verb{};
    std::string user{};
    Wanted wanted{};
    Json body{};
    Operation operation{};
  };
  struct Answer {
    int code = 200;
    std::string body{};
    std::string content_type = "application/json";
    std::optional<std::chrono::seconds> retry_after{};
    ObjectPtr object{};  ///< instead of the body: in the format that the client wants
  };

  /// Discovery, health, OpenAPI; empty when the path is none of these.
  std::optional<Answer> answer_fixed(const HttpRequest& request) const;
  void handle_resource(Call& call);
  /// False when a fault already ended the request. Faults that come later are in `later`.
  bool strike_before(Call& call, std::vector<FaultAction>& later);
  bool strike_after(Call& call, const std::vector<FaultAction>& later);
  /// The Status of a request that the roles do not grant.
  std::optional<Reply> refusal(const Call& call);
  Answer run_verb(Call& call);
  Answer read(Call& call);
  Answer list(Call& call);
  Answer create(Call& call);
  Answer create_subresource(Call& call);
  /// What the node's kubelet answers.
  Answer node_proxy(const Call& call);
  Answer pod_proxy(const Call& call);
  Answer remove(Call& call);
  Answer patch(Call& call);
  void pod_log(Call& call, const std::vector<FaultAction>& later);
  /// Sends what is added to a log until the pod has ended.
  void follow_log(Call& call, const LogSource& source, const std::string& container,
                  std::string_view start, std::size_t sent);
  std::optional<Answer> answer_review(const HttpRequest& request, const std::string& user);
  /// What a TokenRequest for an account is answered with, and the status of a TokenReview.
  Answer request_token(const Call& call);
  Json review_token(const Json& spec) const;
  /// The answer to a (Self)SubjectAccessReview.
  bool is_allowed(const Json& review, const std::string& user) const;

  void watch(Call& call, const std::vector<FaultAction>& later);
  void stream_events(Call& call, Watch& watch);
  /// False when the stream is over.
  bool send_event(Call& call, const WatchEvent& event);
  /// A frame in the format of the call.
  static std::string frame(const Call& call, std::string_view type, const Json& object);
  std::string frame(const Call& call, const WatchEvent& event) const;
  std::string bookmark(const Call& call, std::uint64_t version, bool initial_end) const;

  Answer shaped(const Call& call, const Reply& reply) const;
  static Answer plain(const Reply& reply);
  void record(const Call& call, int code);
  static void respond(const Call& call, Answer answer);
  Reply check_body(Call& call) const;

  Registry& registry_;
  const ApiServer::Options& options_;
  FaultRules& faults_;
  RequestLog& requests_;
  Tokens& tokens_;
  Rbac& rbac_;
  NamespaceSweeper& sweeper_;

  mutable Mutex mutex_;
  LogSource log_source_ LPP_GUARDED_BY(mutex_);
  KubeletSource kubelets_ LPP_GUARDED_BY(mutex_);
  PodPageSource pod_pages_ LPP_GUARDED_BY(mutex_);
  std::vector<Watch*> watches_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
