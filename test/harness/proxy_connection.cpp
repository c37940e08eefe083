// SPDX-License-Identifier: Apache-2.0
#include "harness/proxy_connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "harness/fault_proxy_hooks.h"

namespace lpp::testing {

namespace {

/// Headers that concern one connection, or that the proxy writes itself.
bool is_hop_header(std::string_view name) {
  const std::string lower = to_lower(name);
  return lower == "connection" || lower == "keep-alive" || lower == "transfer-encoding" ||
         lower == "content-length" || lower == "host" || lower == "accept-encoding" ||
         lower == "expect" || lower == "upgrade";
}

void append_headers(const MessageHead& head, std::string& text) {
  for (const auto& [name, value] : head.headers) {
    if (!is_hop_header(name)) text += fmt::format("{}: {}\r\n", name, value);
  }
}

bool wants_close(const MessageHead& head) {
  const std::string* connection = head.find("Connection");
  return connection != nullptr && to_lower(*connection).find("close") != std::string::npos;
}

std::string header_or_empty(const MessageHead& head, std::string_view name) {
  const std::string* value = head.find(name);
  return value == nullptr ? std::string() : *value;
}

Error client_left() {
  return Error{.code = ErrorCode::kCancelled, .message = "the client has left"};
}

/// Of the first frame that is complete, with its line break or its length before it; 0 when there
/// is none.
std::size_t frame_size(std::string_view bytes, bool counted) {
  if (!counted) return bytes.find('\n') + 1;  // npos + 1 is 0
  constexpr std::size_t kLengthBytes = 4;
  if (bytes.size() < kLengthBytes) return 0;
  std::size_t size = 0;
  for (const char byte : bytes.substr(0, kLengthBytes)) {
    size = size << 8U | static_cast<unsigned char>(byte);
  }
  return bytes.size() - kLengthBytes < size ? 0 : kLengthBytes + size;
}

std::string status_body(const ApiRequest& request, const Decision& decision) {
  nlohmann::json status = {
      {"kind", "Status"},
      {"apiVersion", "v1"},
      {"metadata", nlohmann::json::object()},
      {"status", "Failure"},
      {"message", "made to fail: " + request.to_string()},
      {"reason", decision.reason},
      {"code", decision.status},
      {"details", {{"name", request.name}, {"kind", request.resource}}},
  };
  if (decision.retry_after) {
    status["details"]["retryAfterSeconds"] = decision.retry_after->count();
  }
  return status.dump();
}

}  // namespace

FaultProxy::Connection::Connection(FaultProxy& proxy, UniqueFd client)
    : proxy_(proxy), client_(std::move(client), proxy.server_context_.get()) {}

void FaultProxy::Connection::end() {
  cut_ = true;
  client_.shut_down_socket();
  MutexLock lock(mutex_);
  if (upstream_ != nullptr) upstream_->shut_down_socket();
}

void FaultProxy::Connection::run() {
  if (!client_.accept().ok()) return;
  while (!cut_) {
    auto message = read_request();
    if (!message.ok() || !message->has_value()) break;
    if (!serve(**message)) return;  // reset when the object goes
  }
  client_.say_goodbye();
  client_.shut_down_socket();
}

Result<std::optional<FaultProxy::Connection::Message>> FaultProxy::Connection::read_request() {
  LPP_ASSIGN_OR_RETURN(auto head, client_reader_.read_head(), "request");
  if (!head) return std::optional<Message>();
  client_reader_.begin_body(*head, false);
  Message message;
  LPP_ASSIGN_OR_RETURN(message.request.body, client_reader_.read_body(), "request body");
  const auto parts = split(head->first_line, ' ');
  if (parts.size() != 3) return invalid("bad request line: " + head->first_line);
  message.request.method = parts[0];
  message.request.target = parts[1];
  message.request.content_type = header_or_empty(*head, "Content-Type");
  message.request.accept = header_or_empty(*head, "Accept");
  parse_target(message.request);
  message.head = std::move(*head);
  return std::optional<Message>(std::move(message));
}

bool FaultProxy::Connection::serve(const Message& incoming) {
  Message message = incoming;
  message.request = proxy_.record(std::move(message.request));
  Decision decision;
  {
    const HookUse hooks(proxy_);
    if (hooks->before) decision = hooks->before(message.request);
  }
  if (decision.delay.count() > 0) proxy_.wait_delay(decision.delay);
  if (cut_) return false;
  switch (decision.kind) {
    case Decision::Kind::kReply:
      return reply(message.request, decision) && !wants_close(message.head);
    case Decision::Kind::kCutBefore: client_.reset(); return false;
    case Decision::Kind::kHang:
      proxy_.wait_for_release(message.request, [this] { return cut_ || client_.peer_gone(); });
      break;
    case Decision::Kind::kForward:
    case Decision::Kind::kCutAfter:
    case Decision::Kind::kHangAfter: break;
  }
  if (cut_ || client_.peer_gone()) return false;
  return forward(message, decision) && !wants_close(message.head);
}

bool FaultProxy::Connection::reply(const ApiRequest& request, const Decision& decision) {
  const std::string body = status_body(request, decision);
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\n",
                                 decision.status, decision.reason);
  if (decision.retry_after)
    text += fmt::format("Retry-After: {}\r\n", decision.retry_after->count());
  text += fmt::format("Content-Length: {}\r\n\r\n", body.size());
  if (request.method != "HEAD") text += body;
  proxy_.set_status(request.sequence, decision.status);
  return client_.write(text).ok();
}

bool FaultProxy::Connection::forward(const Message& message, const Decision& decision) {
  auto answer = ask_upstream(message);
  if (!answer.ok()) {
    drop_upstream();
    client_.reset();
    return false;
  }
  {
    const HookUse hooks(proxy_);
    if (hooks->after) hooks->after(message.request, answer->status());
  }
  if (decision.answer_delay.count() > 0) proxy_.wait_delay(decision.answer_delay);
  if (decision.kind == Decision::Kind::kHangAfter) {
    proxy_.wait_for_release(message.request, [this] { return cut_ || client_.peer_gone(); });
  }
  if (decision.kind == Decision::Kind::kCutAfter || cut_) {
    client_.reset();
    return false;
  }
  proxy_.set_status(message.request.sequence, answer->status());
  if (!send_answer(message, *answer, decision).ok()) {
    client_.reset();
    return false;
  }
  if (wants_close(*answer)) drop_upstream();
  return true;
}

Result<void> FaultProxy::Connection::ensure_upstream() {
  if (upstream_ != nullptr && !upstream_->peer_gone()) return {};
  drop_upstream();
  const Upstream& target = proxy_.upstream_;
  LPP_ASSIGN_OR_RETURN(auto socket, TlsStream::dial(target.host, target.port), "API server");
  {
    MutexLock lock(mutex_);
    upstream_ = std::make_unique<TlsStream>(std::move(socket), proxy_.client_context_.get());
  }
  if (cut_) return client_left();
  upstream_reader_.emplace(*upstream_, [this] { return wait_for_upstream(); });
  const std::string& name = target.tls_server_name.empty() ? target.host : target.tls_server_name;
  return upstream_->connect(name);
}

void FaultProxy::Connection::drop_upstream() {
  upstream_reader_.reset();
  MutexLock lock(mutex_);
  upstream_.reset();
}

Result<void> FaultProxy::Connection::wait_for_upstream() {
  std::array<pollfd, 2> both{{{.fd = upstream_->fd(), .events = POLLIN, .revents = 0},
                              {.fd = client_.fd(), .events = POLLRDHUP, .revents = 0}}};
  while (true) {
    const int ready = ::poll(both.data(), both.size(), -1);
    if (ready < 0) continue;  // interrupted
    if (both[1].revents != 0 || cut_) return client_left();
    if (both[0].revents != 0) return {};
  }
}

Result<MessageHead> FaultProxy::Connection::ask_upstream(const Message& message) {
  LPP_RETURN_IF_ERROR(ensure_upstream(), "connect");
  const Upstream& target = proxy_.upstream_;
  const ApiRequest& request = message.request;
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}:{}\r\n", request.method,
                                 target.base_path, request.target, target.host, target.port);
  append_headers(message.head, text);
  if (!request.body.empty() || request.is_write()) {
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  text += "\r\n" + request.body;
  LPP_RETURN_IF_ERROR(upstream_->write(text), "request");
  while (true) {
    LPP_ASSIGN_OR_RETURN(auto head, upstream_reader_->read_head(), "answer");
    if (!head) return Error{.code = ErrorCode::kUnavailable, .message = "no answer"};
    if (head->status() >= 200) return *std::move(head);
  }
}

Result<void> FaultProxy::Connection::send_answer(const Message& message, const MessageHead& head,
                                                 const Decision& decision) {
  const int status = head.status();
  const bool bodyless = message.request.method == "HEAD" || status == 204 || status == 304;
  const auto length = head.content_length();
  const bool chunked = !bodyless && !length.has_value();
  std::string text = head.first_line + "\r\n";
  append_headers(head, text);
  if (chunked) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (length) {
    text += fmt::format("Content-Length: {}\r\n", *length);
  }
  LPP_RETURN_IF_ERROR(client_.write(text + "\r\n"), "answer");
  if (bodyless) return {};

  frame_.clear();
  counted_frames_ = header_or_empty(head, "Content-Type").find("protobuf") != std::string::npos;
  body_left_ = decision.cut_body_after;
  pause_ = decision.pause;
  upstream_reader_->begin_body(head, !head.is_chunked() && !length);
  while (true) {
    LPP_ASSIGN_OR_RETURN(const std::string piece, upstream_reader_->next_piece(), "answer body");
    if (piece.empty()) break;
    LPP_RETURN_IF_ERROR(send_piece(message.request, piece, chunked), "answer body");
  }
  if (!chunked) return {};
  return client_.write("0\r\n\r\n");
}

Result<void> FaultProxy::Connection::send_piece(const ApiRequest& request, std::string_view piece,
                                                bool chunked) {
  if (request.is_watch() && chunked) return send_frames(request, piece);
  if (pause_.count() == 0) return write_body(piece, chunked);
  constexpr std::size_t kKilobyte = 1024;
  for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kKilobyte))) {
    proxy_.wait_delay(pause_);
    LPP_RETURN_IF_ERROR(write_body(piece.substr(0, kKilobyte), chunked), "slow answer");
  }
  return {};
}

Result<void> FaultProxy::Connection::send_frames(const ApiRequest& request,
                                                 std::string_view piece) {
  frame_ += piece;
  while (const std::size_t size = frame_size(frame_, counted_frames_)) {
    const std::string frame = frame_.substr(0, size);
    frame_.erase(0, size);
    FrameAction action = FrameAction::kForward;
    {
      const HookUse hooks(proxy_);
      if (hooks->frame) action = hooks->frame(request, frame);
    }
    if (pause_.count() > 0) proxy_.wait_delay(pause_);
    if (action == FrameAction::kTruncate) body_left_ = std::min(body_left_, frame.size() / 2);
    if (action == FrameAction::kCut) body_left_ = 0;
    if (action == FrameAction::kDrop) continue;
    LPP_RETURN_IF_ERROR(write_body(frame, true), "frame");
    if (action == FrameAction::kDuplicate) LPP_RETURN_IF_ERROR(write_body(frame, true), "frame");
  }
  return {};
}

Result<void> FaultProxy::Connection::write_body(std::string_view data, bool chunked) {
  const bool cut_here = data.size() > body_left_;
  if (cut_here) data = data.substr(0, body_left_);
  if (body_left_ != std::string::npos) body_left_ -= data.size();
  if (chunked && !data.empty()) {
    LPP_RETURN_IF_ERROR(client_.write(fmt::format("{:x}\r\n{}\r\n", data.size(), data)), "write");
  } else {
    LPP_RETURN_IF_ERROR(client_.write(data), "write");
  }
  if (cut_here) return Error{.code = ErrorCode::kUnavailable, .message = "cut on purpose"};
  return {};
}

}  // namespace lpp::testing
