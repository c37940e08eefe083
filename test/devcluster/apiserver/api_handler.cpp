// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/api_handler.h"

#include "base/strings.h"
#include "devcluster/apiserver/discovery.h"
#include "devcluster/apiserver/protobuf.h"
#include "devcluster/apiserver/protobuf_writer.h"
#include "devcluster/apiserver/status.h"
#include "devcluster/apiserver/table.h"

namespace lpp::devcluster {
namespace {

std::string bearer_token(const HttpRequest& request) {
  const std::string header = request.header("authorization");
  if (header.size() < 8 || to_lower(header.substr(0, 7)) != "bearer ") return {};
  return std::string(trim(std::string_view(header).substr(7)));
}

bool is_write(std::string_view verb) {
  return verb == "create" || verb == "update" || verb == "patch";
}

}  // namespace

ApiHandler::ApiHandler(Registry& registry, const ApiServer::Options& options, FaultRules& faults,
                       RequestLog& requests, Tokens& tokens, Rbac& rbac, NamespaceSweeper& sweeper)
    : registry_(registry),
      options_(options),
      faults_(faults),
      requests_(requests),
      tokens_(tokens),
      rbac_(rbac),
      sweeper_(sweeper) {}

void ApiHandler::stop_watches() {
  const MutexLock lock(mutex_);
  for (auto* watch : watches_) watch->stop();
}

void ApiHandler::handle(Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  Call call{.request = request, .exchange = exchange, .path = parse_api_path(request.path)};
  call.verb = verb_of(request, call.path);
  call.operation = {.verb = call.verb,
                    .subresource = call.path.subresource,
                    .ns = call.path.ns,
                    .name = call.path.name,
                    .user_agent = request.header("user-agent")};
  if (call.path.info != nullptr) call.operation.resource = call.path.info->plural;
  call.wanted = wanted_of(request.header("accept"),
                          call.path.info != nullptr ? call.path.info->kind : std::string(),
                          options_.protobuf);
  const bool open = request.path == "/healthz" || request.path == "/readyz" ||
                    request.path == "/livez" || request.path == "/version";
  const auto user = tokens_.user_of(bearer_token(request));
  std::optional<Answer> answer;
  if (!user && !open) {
    answer = plain(make_status(401, "Unauthorized", "Unauthorized"));
  } else if (request.body_too_large) {
    answer = plain(
        make_status(413, "RequestEntityTooLarge",
                    "Request entity too large: limit is " + std::to_string(options_.body_limit)));
  } else {
    call.user = user.value_or("system:anonymous");
    const std::string other = request.header("impersonate-user");
    if (!other.empty()) call.user = other;
    if (call.path.info != nullptr) return handle_resource(call);
    answer = answer_fixed(request);
    if (!answer) answer = answer_review(request, call.user);
    if (!answer && call.path.is_api) answer = plain(unknown_resource());
    if (!answer)
      answer = Answer{
          .code = 404, .body = "404 page not found\n", .content_type = "text/plain; charset=utf-8"};
  }
  record(call, answer->code);
  respond(call, std::move(*answer));
}

std::optional<ApiHandler::Answer> ApiHandler::answer_fixed(const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  std::string path = request.path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.starts_with("/healthz") || path.starts_with("/readyz") || path.starts_with("/livez")) {
    return Answer{.body = "ok", .content_type = "text/plain; charset=utf-8"};
  }
  if (path == "/version") return Answer{.body = dump(version_info(options_.git_version))};
  if (path.starts_with("/openapi/")) {
    if (const auto document = openapi(path, options_.git_version)) {
      return Answer{.body = dump(*document)};
    }
    return std::nullopt;
  }
  const bool aggregated =
      request.header("accept").find("g=apidiscovery.k8s.io;v=v2;") != std::string::npos;
  const auto document = discovery(path, aggregated);
  if (!document) return std::nullopt;
  Answer answer{.body = dump(*document)};
  if (aggregated && (path == "/api" || path == "/apis")) {
    answer.content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  }
  return answer;
}

void ApiHandler::handle_resource(Call& call) {
  if (call.verb == "create" || call.verb == "update" || call.verb == "patch") {
    call.body = request_body(call.request);
    if (call.operation.name.empty()) call.operation.name = name_of(call.body);
    if (call.operation.name.empty()) {
      call.operation.name = text_at(call.body, {"metadata", "generateName"});
    }
  }
  std::vector<FaultAction> later;
  if (!strike_before(call, later)) return;
  if (const auto refused = refusal(call)) {
    record(call, refused->code);
    return respond(call, plain(*refused));
  }
  if (call.verb == "watch") return watch(call, later);
  if (call.verb == "get" && call.path.info->plural == "pods" && call.path.subresource == "log") {
    return pod_log(call, later);
  }
  const Answer answer = run_verb(call);
  if (!strike_after(call, later)) {
    record(call, 0);
    return;
  }
  record(call, answer.code);
  respond(call, answer);
}

std::optional<Reply> ApiHandler::refusal(const Call& call) {
  const auto& path = call.path;
  Access access{.verb = call.verb,
                .group = path.info->group,
                .resource = path.info->plural,
                .ns = path.ns,
                .name = path.name};
  if (!path.subresource.empty()) access.resource += "/" + path.subresource;
  // A list of one name is a right to that name, as a real API server sees it.
  constexpr std::string_view kOneName = "metadata.name=";
  const std::string fields = call.request.param("fieldSelector");
  if (access.name.empty() && fields.starts_with(kOneName)) {
    access.name = fields.substr(kOneName.size());
  }
  if (rbac_.check(call.user, access)) return std::nullopt;
  return make_status(403, "Forbidden",
                     access.resource + " is forbidden: User \"" + call.user + "\" cannot " +
                         access.verb + " resource \"" + access.resource + "\" in API group \"" +
                         access.group + "\"" +
                         (access.ns.empty() ? std::string(" at the cluster scope")
                                            : " in the namespace \"" + access.ns + "\""));
}

bool ApiHandler::is_allowed(const Json& review, const std::string& user) const {
  const Json& spec = child(review, "spec");
  const Json& wanted = child(spec, "resourceAttributes");
  Access access{.verb = text_at(wanted, {"verb"}),
                .group = text_at(wanted, {"group"}),
                .resource = text_at(wanted, {"resource"}),
                .ns = text_at(wanted, {"namespace"}),
                .name = text_at(wanted, {"name"})};
  const std::string subresource = text_at(wanted, {"subresource"});
  if (!subresource.empty()) access.resource += "/" + subresource;
  const std::string other = text_at(spec, {"user"});
  return rbac_.allows(other.empty() ? user : other, access);
}

bool ApiHandler::strike_before(Call& call, std::vector<FaultAction>& later) {
  using Kind = FaultAction::Kind;
  for (auto& action : faults_.decide(call.operation)) {
    switch (action.kind) {
      case Kind::kReply: {
        auto answer = plain(fault_status(action.code, action.reason, "", action.retry_after));
        answer.retry_after = action.retry_after;
        record(call, action.code);
        respond(call, answer);
        return false;
      }
      case Kind::kExpire: {
        const Reply status = watch_expired(0, registry_.resource_version());
        Answer answer = plain(status);
        if (call.verb == "watch") {
          answer = {.body = frame(call, "ERROR", *status.body),
                    .content_type = std::string(call.wanted.protobuf ? kProtobufWatchType
                                                                     : "application/json")};
        }
        record(call, answer.code);
        respond(call, answer);
        return false;
      }
      case Kind::kCutBefore:
        record(call, 0);
        call.exchange.cut();
        return false;
      case Kind::kHang:
        record(call, 0);
        call.exchange.wait_for_close();
        call.exchange.cut();
        return false;
      case Kind::kDelay:
        if (!call.exchange.pause(action.delay)) {
          record(call, 0);
          call.exchange.cut();
          return false;
        }
        break;
      case Kind::kCallBefore:
        if (action.callback) action.callback();
        break;
      default: later.push_back(std::move(action));
    }
  }
  return true;
}

bool ApiHandler::strike_after(Call& call, const std::vector<FaultAction>& later) {
  for (const auto& action : later) {
    if (action.kind == FaultAction::Kind::kCallAfter && action.callback) action.callback();
    if (action.kind == FaultAction::Kind::kCutAfter) {
      call.exchange.cut();
      return false;
    }
  }
  return true;
}

/// {200} or why the body cannot be taken.
Reply ApiHandler::check_body(Call& call) const {
  if (!is_write(call.verb)) return {200, nullptr};
  const std::string type = media_type(call.request.header("content-type"));
  if (call.verb == "patch") {
    if (!patch_type(type)) {
      return make_status(415, "UnsupportedMediaType",
                         "the body of the request was in an unknown format - accepted media types "
                         "include: application/json-patch+json, application/merge-patch+json, "
                         "application/apply-patch+yaml, application/strategic-merge-patch+json");
    }
  } else if (is_protobuf(type)) {
    if (call.body.is_null()) {
      return make_status(415, "UnsupportedMediaType",
                         "the embedded cluster does not read this kind as protobuf; send JSON");
    }
  } else if (!type.empty() && type != "application/json") {
    return make_status(415, "UnsupportedMediaType",
                       "the body of the request was in an unknown format - accepted media types "
                       "include: application/json");
  }
  if (call.body.is_null()) {
    return bad_request("the body of the request could not be decoded as JSON");
  }
  return {200, nullptr};
}

std::optional<ApiHandler::Answer> ApiHandler::answer_review(const HttpRequest& request,
                                                            const std::string& user) {
  if (request.method != "POST") return std::nullopt;
  const bool authorization = request.path.starts_with("/apis/authorization.k8s.io/v1/");
  const bool authentication = request.path.starts_with("/apis/authentication.k8s.io/v1/");
  if (!authorization && !authentication) return std::nullopt;
  Json review = request_body(request);
  if (!review.is_object()) review = Json::object();
  const std::string plural = request.path.substr(request.path.rfind('/') + 1);
  // Everybody may ask about himself.
  if (plural == "subjectaccessreviews" &&
      !rbac_.check(user, {.verb = "create", .group = "authorization.k8s.io", .resource = plural})) {
    return plain(make_status(403, "Forbidden", "User \"" + user + "\" cannot create " + plural));
  }
  if (plural == "selfsubjectaccessreviews" || plural == "subjectaccessreviews") {
    review["status"] = {{"allowed", is_allowed(review, user)}};
  } else if (plural == "selfsubjectrulesreviews") {
    const Json all = Json::array({"*"});
    review["status"] = {
        {"resourceRules", Json::array({{{"verbs", all}, {"apiGroups", all}, {"resources", all}}})},
        {"nonResourceRules", Json::array({{{"verbs", all}, {"nonResourceURLs", all}}})},
        {"incomplete", false}};
  } else if (plural == "selfsubjectreviews") {
    review["status"] = {{"userInfo", {{"username", user}}}};
  } else if (plural == "tokenreviews") {
    if (!rbac_.check(user,
                     {.verb = "create", .group = "authentication.k8s.io", .resource = plural})) {
      return plain(make_status(403, "Forbidden", "User \"" + user + "\" cannot create " + plural));
    }
    review["status"] = review_token(child(review, "spec"));
  } else {
    return std::nullopt;
  }
  return Answer{.code = 201, .body = dump(review)};
}

void ApiHandler::record(const Call& call, int code) {
  std::string target = call.request.path;
  for (std::size_t i = 0; i < call.request.query.size(); ++i) {
    const auto& [key, value] = call.request.query[i];
    target.append(i == 0 ? "?" : "&").append(key).append("=").append(value);
  }
  requests_.add({.operation = call.operation,
                 .method = call.request.method,
                 .target = std::move(target),
                 .user = call.user,
                 .code = code,
                 .time = std::chrono::steady_clock::now()});
}

void ApiHandler::respond(const Call& call, Answer answer) {
  if (answer.object != nullptr) {
    const bool status = text_at(*answer.object, {"kind"}) == "Status";
    const bool wanted = status ? call.wanted.status_protobuf : call.wanted.protobuf;
    auto bytes = wanted ? protobuf_object(*answer.object) : std::nullopt;
    if (bytes) answer.content_type = kProtobufType;
    answer.body = bytes ? *std::move(bytes) : dump(*answer.object) + "\n";
  }
  testing::HttpHeaders headers = {{"Content-Type", answer.content_type},
                                  {"Cache-Control", "no-cache"}};
  if (answer.retry_after) {
    headers.emplace_back("Retry-After", std::to_string(answer.retry_after->count()));
  }
  call.exchange.respond(answer.code, answer.body, headers);
}

}  // namespace lpp::devcluster
