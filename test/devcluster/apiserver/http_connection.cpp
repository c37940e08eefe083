// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/http_connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/strings.h"
#include "devcluster/apiserver/http_message.h"

namespace lpp::devcluster {
namespace {

constexpr std::size_t kHeadLimit = std::size_t{1024} * 1024;
constexpr std::size_t kWriteSlice = std::size_t{16} * 1024;
constexpr std::chrono::seconds kIoTimeout{20};

std::string hex(std::size_t value) {
  std::array<char, 20> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, 16).ptr;
  return {text.data(), end};
}

}  // namespace

HttpConnection::HttpConnection(int fd, SSL_CTX* context, const HttpServer::Options& options,
                               const HttpServer::Handler& handler,
                               const std::atomic<bool>& stopping)
    : fd_(fd), options_(options), handler_(handler), stopping_(stopping), ssl_(SSL_new(context)) {}

HttpConnection::~HttpConnection() {
  const MutexLock lock(mutex_);
  if (!closed_) ::close(fd_);
}

void HttpConnection::run() {
  serve();
  if (!broken_ && ssl_ != nullptr) SSL_shutdown(ssl_.get());
  {
    const MutexLock lock(mutex_);
    ::close(fd_);
    closed_ = true;
  }
  done_ = true;
}

void HttpConnection::serve() {
  timeval timeout{};
  timeout.tv_sec = kIoTimeout.count();
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), fd_) != 1 || SSL_accept(ssl_.get()) != 1) {
    ERR_clear_error();
    broken_ = true;
    return;
  }
  while (!stopping_ && !broken_ && serve_one()) {
  }
  ERR_clear_error();
}

void HttpConnection::shut_down() {
  broken_ = true;
  const MutexLock lock(mutex_);
  if (!closed_) ::shutdown(fd_, SHUT_RDWR);
}

void HttpConnection::cut_soon() {
  {
    const MutexLock lock(mutex_);
    if (!closed_) set_linger_reset();
  }
  shut_down();
}

bool HttpConnection::serve_one() {
  auto end = buffer_.find("\r\n\r\n");
  while (end == std::string::npos) {
    if (buffer_.size() > kHeadLimit) return false;
    if (buffer_.empty() && !wait_readable()) return false;
    if (!fill()) return false;
    end = buffer_.find("\r\n\r\n");
  }
  auto request = parse_request_head(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + 4);
  answered_ = chunked_ = head_only_ = false;
  if (!request) {
    send(400, {{"Connection", "close"}}, "malformed request");
    return false;
  }
  head_only_ = request->method == "HEAD";
  if (!read_body(*request)) return false;
  handler_(*request, *this);
  if (!answered_ && !broken_) send(500, {}, "no answer");
  if (request->body_too_large) return false;
  return !broken_ && to_lower(request->header("connection")) != "close";
}

/// Waits for the next request; false when the connection was idle for too long or has ended.
bool HttpConnection::wait_readable() {
  if (SSL_pending(ssl_.get()) > 0) return true;
  pollfd entry{};
  entry.fd = fd_;
  entry.events = POLLIN;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(options_.idle_timeout);
  return ::poll(&entry, 1, static_cast<int>(limit.count())) > 0 && !stopping_ && !broken_;
}

bool HttpConnection::fill() {
  std::array<char, kWriteSlice> data{};
  const int n = SSL_read(ssl_.get(), data.data(), static_cast<int>(data.size()));
  if (n <= 0) {
    broken_ = true;
    return false;
  }
  buffer_.append(data.data(), static_cast<std::size_t>(n));
  return true;
}

bool HttpConnection::read_body(HttpRequest& request) {
  if (to_lower(request.header("expect")) == "100-continue" &&
      !write_all("HTTP/1.1 100 Continue\r\n\r\n")) {
    return false;
  }
  if (to_lower(request.header("transfer-encoding")) == "chunked") return read_chunks(request);
  const std::string length = request.header("content-length");
  if (length.empty()) return true;
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), size);
  if (error != std::errc() || end != length.data() + length.size()) {
    send(400, {{"Connection", "close"}}, "malformed Content-Length");
    return false;
  }
  request.body_too_large = size > options_.body_limit;
  return request.body_too_large || read_exactly(size, request.body);
}

bool HttpConnection::read_exactly(std::size_t size, std::string& out) {
  while (buffer_.size() < size) {
    if (!fill()) return false;
  }
  out.append(buffer_, 0, size);
  buffer_.erase(0, size);
  return true;
}

bool HttpConnection::read_chunks(HttpRequest& request) {
  while (true) {
    std::string line;
    if (!read_line(line)) return false;
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (error != std::errc() || (end != line.data() + line.size() && *end != ';')) return false;
    if (size == 0) break;
    request.body_too_large = request.body.size() + size > options_.body_limit;
    if (request.body_too_large) return true;
    if (!read_exactly(size, request.body) || !read_line(line)) return false;
  }
  std::string trailer;
  do {
    trailer.clear();
    if (!read_line(trailer)) return false;
  } while (!trailer.empty());
  return true;
}

bool HttpConnection::read_line(std::string& line) {
  auto end = buffer_.find("\r\n");
  while (end == std::string::npos) {
    if (buffer_.size() > kHeadLimit || !fill()) return false;
    end = buffer_.find("\r\n");
  }
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return true;
}

bool HttpConnection::write_all(std::string_view data) {
  while (!data.empty() && !broken_) {
    const auto slice = data.substr(0, kWriteSlice);
    const int n = SSL_write(ssl_.get(), slice.data(), static_cast<int>(slice.size()));
    if (n <= 0) {
      broken_ = true;
      return false;
    }
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return !broken_;
}

bool HttpConnection::send(int code, const HttpHeaders& headers, std::string_view body) {
  answered_ = true;
  std::string text = response_head(code, headers);
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (!head_only_) text += body;
  return write_all(text);
}

bool HttpConnection::begin_chunks(int code, const HttpHeaders& headers) {
  answered_ = chunked_ = true;
  return write_all(response_head(code, headers) + "Transfer-Encoding: chunked\r\n\r\n");
}

bool HttpConnection::write_chunk(std::string_view data) {
  if (data.empty()) return !broken_;
  std::string text = hex(data.size()) + "\r\n";
  text += data;
  text += "\r\n";
  return write_all(text);
}

bool HttpConnection::end_chunks() { return write_all("0\r\n\r\n"); }

void HttpConnection::set_linger_reset() {
  linger option{};
  option.l_onoff = 1;
  option.l_linger = 0;
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &option, sizeof(option));
}

void HttpConnection::cut() {
  answered_ = broken_ = true;
  set_linger_reset();  // run() closes the socket, which then resets the connection
}

bool HttpConnection::gone() const {
  if (stopping_ || broken_) return true;
  pollfd entry{};
  entry.fd = fd_;
  entry.events = POLLRDHUP;
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace lpp::devcluster
