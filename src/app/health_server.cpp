// SPDX-License-Identifier: Apache-2.0
#include "app/health_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/http_head.h"
#include "base/listener.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/sync.h"

namespace lpp::app {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 2;
constexpr std::size_t kMaxWaiting = 64;
constexpr Duration kLingerTime = 200ms;
constexpr std::size_t kMaxRequestBytes = 16'384;
constexpr int kBacklog = 16;
constexpr Duration kAcceptPause = 100ms;

/// A connection's bytes, with a deadline and a limit for all of them together. One thread only.
class BoundedSocket {
 public:
  BoundedSocket(int socket, const Clock& clock, TimePoint deadline)
      : socket_(socket), clock_(clock), deadline_(deadline) {}

  /// What came next; "" when nothing more may come.
  std::string_view receive() {
    if (total_ >= kMaxRequestBytes) return {};
    while (wait_for(POLLIN)) {
      const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return {};
      total_ += static_cast<std::size_t>(got);
      return {buffer_.data(), static_cast<std::size_t>(got)};
    }
    return {};
  }

  void send_all(std::string_view text) {
    while (!text.empty() && wait_for(POLLOUT)) {
      const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (sent < 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// Ends our side and waits a moment for the client to end its own: closing a socket with unread
  /// input would reset the connection, and the client could lose the answer.
  void finish() {
    ::shutdown(socket_, SHUT_WR);
    deadline_ = std::min(deadline_, clock_.now() + kLingerTime);
    while (!receive().empty()) {
    }
  }

 private:
  bool wait_for(short events) const {
    pollfd poller{.fd = socket_, .events = events, .revents = 0};
    while (true) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.now()).count();
      if (left <= 0) return false;
      const int ready = poll(&poller, 1, static_cast<int>(left));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  const int socket_;
  const Clock& clock_;
  TimePoint deadline_;
  std::array<char, 2048> buffer_{};
  std::size_t total_ = 0;
};

/// Connections that wait for a thread or are being served. Thread-safe. Owns the sockets.
class Connections {
 public:
  struct Item {
    int socket;
    TimePoint accepted;
  };

  /// Closes the connection at once when too many wait, or after stop().
  void add(Item item) LPP_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!stopped_ && waiting_.size() < kMaxWaiting) {
        waiting_.push_back(item);
        changed_.notify_one();
        return;
      }
    }
    ::close(item.socket);
  }

  /// The next one to serve, to be given back to close(); nullopt after stop().
  std::optional<Item> next() LPP_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!stopped_ && waiting_.empty()) changed_.wait(mutex_);
    if (stopped_) return std::nullopt;
    const Item item = waiting_.front();
    waiting_.pop_front();
    served_.insert(item.socket);
    return item;
  }

  void close(int socket) LPP_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    served_.erase(socket);
    ::close(socket);  // under the lock: stop() must not cut a new socket of the same number
  }

  /// Cuts what is being served and closes what waits.
  void stop() LPP_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (const Item& item : waiting_) ::close(item.socket);
    waiting_.clear();
    for (const int socket : served_) ::shutdown(socket, SHUT_RDWR);
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ LPP_GUARDED_BY(mutex_) = false;
  std::deque<Item> waiting_ LPP_GUARDED_BY(mutex_);
  std::set<int> served_ LPP_GUARDED_BY(mutex_);
};

std::string head_of(const ProbeAnswer& answer) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}"
      "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
      "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors "
      "'none'\r\nConnection: close\r\n\r\n",
      answer.status, http_reason(answer.status), answer.content_type, answer.body.size(),
      answer.allow.empty() ? "" : "Allow: " + answer.allow + "\r\n");
}

/// Reads one request and answers it; its body, which no answer depends on, is not read.
void serve(BoundedSocket& socket, const HealthEndpoints& endpoints) {
  std::string text;
  while (true) {
    const std::string_view more = socket.receive();
    if (more.empty()) return;
    text += more;
    const auto head = parse_http_head(text);
    if (head.ok() && !*head) continue;
    const ProbeAnswer answer =
        head.ok() ? answer_probe(endpoints, (*head)->method, (*head)->target)
                  : ProbeAnswer{.status = head.error().http_status, .body = head.error().message};
    socket.send_all(head_of(answer));
    if (!head.ok() || (*head)->method != "HEAD") socket.send_all(answer.body);
    return socket.finish();
  }
}

}  // namespace

class HealthServer::Impl {
 public:
  Impl(int listener, HealthEndpoints endpoints, Clock& clock, Duration connection_time)
      : listener_(listener),
        port_(port_of(listener)),
        clock_(clock),
        connection_time_(connection_time),
        endpoints_(std::move(endpoints)) {
    threads_.emplace_back([this](const std::stop_token& stop) { accept_all(stop); });
    for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { serve_all(); });
  }

  ~Impl() {
    stop();
    ::close(listener_);
  }

  int port() const { return port_; }

  void stop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    ::shutdown(listener_, SHUT_RDWR);  // wakes accept(), now and in future
    connections_.stop();
    MutexLock lock(join_mutex_);
    for (std::jthread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void accept_all(const std::stop_token& stop) {
    set_thread_name("health");
    while (!stop.stop_requested()) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) {
        connections_.add({socket, clock_.now()});
      } else if (errno != EINTR && errno != ECONNABORTED) {
        clock_.sleep_for(kAcceptPause, stop);  // out of descriptors or memory: it may pass
      }
    }
  }

  void serve_all() {
    set_thread_name("health");
    while (const auto item = connections_.next()) {
      BoundedSocket socket(item->socket, clock_, item->accepted + connection_time_);
      try {
        serve(socket, endpoints_);
      } catch (const std::exception& e) {  // of a page; the next request may be better
        log::debug("health: request not served: {}", e.what());
      }
      connections_.close(item->socket);
    }
  }

  const int listener_;
  const int port_;
  Clock& clock_;
  const Duration connection_time_;
  const HealthEndpoints endpoints_;
  Connections connections_{};
  Mutex join_mutex_;
  std::vector<std::jthread> threads_{};
};

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthServer::~HealthServer() = default;

Result<std::unique_ptr<HealthServer>> HealthServer::start(const Settings& settings,
                                                          HealthEndpoints endpoints, Clock& clock) {
  const int listener = listen_on(settings.port, kBacklog, settings.address);
  if (listener < 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = fmt::format("listen on port {}{}: {}", settings.port,
                                        settings.address.empty() ? "" : " of " + settings.address,
                                        std::generic_category().message(errno))};
  }
  auto impl =
      std::make_unique<Impl>(listener, std::move(endpoints), clock, settings.connection_time);
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

int HealthServer::port() const { return impl_->port(); }

void HealthServer::stop() { impl_->stop(); }

}  // namespace lpp::app
