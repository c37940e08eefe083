// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "agent/agent_server_impl.h"
#include "base/log.h"

// What is asked on connections: who asks, whether that is too much, and the answer.

namespace lpp::agent {

namespace {

constexpr std::size_t kMaxHello = 65536;
/// A token that was good on a connection is not asked for again there for so long.
constexpr std::chrono::seconds kProvedFor{10};
/// Beyond the time that the executor holds a poll.
constexpr std::chrono::minutes kHeldAtMost{10};
/// Whoever shows bad tokens does not fill the log.
constexpr std::chrono::minutes kSaidAgain{1};

std::string peer_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool known =
      ::getpeername(socket, any, &size) == 0 &&
      ::getnameinfo(any, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return known ? host.data() : "somebody";
}

int status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid: return error.http_status != 0 ? error.http_status : 400;
    case ErrorCode::kUnauthorized: return 401;
    case ErrorCode::kForbidden: return 403;
    case ErrorCode::kExpired: return 410;
    case ErrorCode::kTooManyRequests: return 429;
    default: return 503;
  }
}

}  // namespace

void AgentServer::Impl::on_head(Connection& one) {
  const std::string& target = one.head.target;
  const bool is_hello = target == kHelloTarget;
  const auto refuse_with = [&](int status, const char* reason, const char* words) {
    count_refused(reason);
    answer(one, status, words, true);
  };
  if (!is_hello && target != kTellTarget && target != kPollTarget) {
    return refuse_with(404, "malformed", "there is nothing of that name");
  }
  if (!leads_()) return refuse_with(503, "not_leading", "this replica does not lead");
  if (one.head.body > (is_hello ? kMaxHello : kMaxMessage)) {
    return refuse_with(413, "too_large", "the message is too large");
  }
  if (one.head.token.empty()) {
    return refuse_with(401, "token", "a token is needed: Authorization: Bearer");
  }
  one.stage = Stage::kBody;
  if (one.proved && one.token == one.head.token && clock_.now() < one.proved_until) {
    (void)is_admitted(one);
    return;
  }
  one.stage = Stage::kProving;
  one.token = one.head.token;
  const bool added = proofs_.add([this, id = one.id, request = ++one.request, token = one.token] {
    mail_->post([this, id, request, who = authenticate_(token)] { on_identity(id, request, who); });
  });
  if (!added) refuse_with(503, "unproved", "too many tokens wait to be looked at");
}

void AgentServer::Impl::on_identity(std::uint64_t id, std::uint64_t request,
                                    Result<AgentIdentity> who) {
  Connection* const one = find(id);
  if (one == nullptr || one->request != request || one->stage != Stage::kProving) return;
  if (!who.ok()) {
    const int status = status_of(who.error());
    count_refused(status == 401 ? "token" : status == 403 ? "forbidden" : "unproved");
    one->proved_until = {};
    if (status == 401 || status == 403) say_refused(*one, who.error());
    answer(*one, status == 401 || status == 403 ? status : 503, who.error().message, true);
    advance(*one);
    return;
  }
  if (one->proved && one->who.node != who->node) {  // then it is somebody else's
    count_refused("forbidden");
    say_refused(*one, {.code = ErrorCode::kForbidden,
                       .message = fmt::format("a token of node {} on the connection of node {}",
                                              who->node, one->who.node)});
    close(*one);
    return;
  }
  if (!one->proved) {
    one->proved = true;
    --unproved_;
    const TokenBucket full(settings_.burst, settings_.requests_per_second);
    auto& mine = nodes_.try_emplace(who->node, Node{full}).first->second.connections;
    mine.push_back(id);
    if (mine.size() > settings_.most_per_node) {
      count_refused("connections");
      close(*connections_.at(mine.front()));
    }
  }
  one->who = *std::move(who);
  one->proved_until = std::min(clock_.now() + kProvedFor, one->who.good_until);
  one->deadline = clock_.now() + settings_.request_time;
  one->stage = Stage::kBody;
  (void)is_admitted(*one);
  advance(*one);
}

void AgentServer::Impl::say_refused(const Connection& one, const Error& why) {
  const TimePoint now = clock_.now();
  if (refusal_said_ && now - *refusal_said_ < kSaidAgain) {
    ++refusals_unsaid_;
    return;
  }
  const std::string before =
      refusals_unsaid_ == 0 ? ""
                            : fmt::format(" (and {} more since the last line)", refusals_unsaid_);
  log::warn("agents: {} is refused: {}{}", peer_of(one.socket.fd()), why.message, before);
  refusal_said_ = now;
  refusals_unsaid_ = 0;
}

bool AgentServer::Impl::is_admitted(Connection& one) {
  if (nodes_.at(one.who.node).requests.take(clock_.now())) return true;
  count_refused("rate");
  answer(one, 429, "too many requests", true);
  return false;
}

void AgentServer::Impl::on_body(Connection& one) {
  std::string body = one.in.substr(one.head.size, one.head.body);
  one.in.erase(0, one.head.size + one.head.body);
  one.in.shrink_to_fit();
  one.stage = Stage::kPending;
  one.deadline = clock_.now() + kHeldAtMost;
  want(one, 0);
  const bool added = jobs_.add(
      [this, id = one.id, request = ++one.request, target = one.head.target, who = one.who,
       body = std::move(body)] { handle(id, request, target, who, body); });
  if (added) return;
  count_refused("rate");
  answer(one, 503, "too much waits to be looked at", true);
}

/// On a thread of the jobs.
void AgentServer::Impl::handle(std::uint64_t id, std::uint64_t request, const std::string& target,
                               const AgentIdentity& who, const std::string& body) {
  const auto answer_with = [&](Result<std::string> text) {
    mail_->post([this, id, request, text = std::move(text)] { reply(id, request, text); });
  };
  if (target == kHelloTarget) {
    count_request("hello");
    const auto hello = decode_hello(body);
    if (!hello.ok()) return answer_with(hello.error());
    const auto welcome = executor_.hello(who, *hello);
    if (!welcome.ok()) return answer_with(welcome.error());
    return answer_with(encode(*welcome));
  }
  if (target == kTellTarget) {
    count_request("tell");
    auto tell = decode_tell(body);
    if (!tell.ok()) return answer_with(tell.error());
    const auto told = executor_.tell(who, *std::move(tell));
    if (!told.ok()) return answer_with(told.error());
    return answer_with(encode(*told));
  }
  count_request("poll");
  const auto poll = decode_poll(body);
  if (!poll.ok()) return answer_with(poll.error());
  // The executor may answer after we have ended: then nobody reads the mail.
  const auto answer_poll = [this, mail = mail_, id, request](const Result<Orders>& orders) {
    Result<std::string> text = orders.ok() ? Result<std::string>(encode(*orders)) : orders.error();
    mail->post([this, id, request, text = std::move(text)] { reply(id, request, text); });
  };
  const auto ticket = executor_.poll(who, *poll, answer_poll);
  mail_->post([this, id, request, ticket, who] {
    Connection* const one = find(id);
    if (one != nullptr && one->request == request) {
      if (one->stage == Stage::kPending) one->ticket = ticket;
    } else {
      executor_.abandon(who, ticket);
    }
  });
}

void AgentServer::Impl::reply(std::uint64_t id, std::uint64_t request, Result<std::string> text) {
  Connection* const one = find(id);
  if (one == nullptr || one->request != request || one->stage != Stage::kPending) return;
  one->ticket.reset();
  if (!text.ok()) {
    const std::string& reason = text.error().reason;
    count_refused(reason.empty() ? "malformed" : reason);
    refuse(*one, text.error(), false);
  } else if (!leads_()) {
    count_refused("not_leading");
    answer(*one, 503, "this replica does not lead", false);
  } else {
    answer(*one, 200, *text, false);
  }
  advance(*one);
}

void AgentServer::Impl::refuse(Connection& one, const Error& error, bool close_after) {
  answer(one, status_of(error), error.message, close_after);
}

void AgentServer::Impl::answer(Connection& one, int status, std::string_view body,
                               bool close_after) {
  one.close_after = close_after || !one.head.keep_alive;
  one.out = answer_text(status, body, one.close_after);
  one.unwritten = one.out;
  one.stage = Stage::kWriting;
  one.deadline = clock_.now() + settings_.request_time;
}

}  // namespace lpp::agent
