#include "app/health_server.h"

#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

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
constexpr std::size_t kMaxPayloadBytes = 1024;
constexpr int kBacklog = 16;
constexpr Duration kAcceptPause = 100ms;

/// A connection's bytes, with a deadline and a limit for all of them together: the library's own
/// timeouts begin anew with each byte. One thread only.
class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, const Clock& clock, TimePoint deadline)
      : socket_(socket), clock_(clock), deadline_(deadline) {}

  bool is_readable() const override { return begin_ < end_ || wait_for(POLLIN); }
  bool is_writable() const override { return wait_for(POLLOUT); }

  ssize_t read(char* out, size_t size) override {
    if (begin_ == end_) {
      const ssize_t got = receive();
      if (got <= 0) return got;
    }
    const std::size_t count = std::min(size, end_ - begin_);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), count, out);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* data, size_t size) override {
    if (!wait_for(POLLOUT)) return -1;
    return send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return socket_; }

  /// Ends our side and waits a moment for the client to end its own: closing a socket with unread
  /// input would reset the connection, and the client could lose the answer.
  void finish() {
    ::shutdown(socket_, SHUT_WR);
    deadline_ = std::min(deadline_, clock_.now() + kLingerTime);
    while (receive() > 0) {
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

  ssize_t receive() {
    if (total_ >= kMaxRequestBytes || !wait_for(POLLIN)) return -1;
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    begin_ = 0;
    end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    total_ += end_;
    return got;
  }

  const socket_t socket_;
  const Clock& clock_;
  TimePoint deadline_;
  std::array<char, 2048> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t total_ = 0;
};

/// Connections that wait for a thread or are being served. Thread-safe. Owns the sockets.
class Connections {
 public:
  struct Item {
    socket_t socket;
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

  void close(socket_t socket) LPP_EXCLUDES(mutex_) {
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
    for (const socket_t socket : served_) ::shutdown(socket, SHUT_RDWR);
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ LPP_GUARDED_BY(mutex_) = false;
  std::deque<Item> waiting_ LPP_GUARDED_BY(mutex_);
  std::set<socket_t> served_ LPP_GUARDED_BY(mutex_);
};

void answer(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text, "text/plain");
}

/// The library's HTTP parser with our own connections and answers.
class ProbeServer final : public httplib::Server {
 public:
  explicit ProbeServer(std::vector<ReadinessCheck> checks) : checks_(std::move(checks)) {
    set_payload_max_length(kMaxPayloadBytes);
    // Before the library would read a body.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      route(request, response);
      return HandlerResponse::Handled;
    });
  }

  /// Reads one request and answers it. Thread-safe.
  void serve(BoundedStream& stream) {
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, nullptr);
    stream.finish();
  }

 private:
  void route(const httplib::Request& request, httplib::Response& response) const {
    if (request.path == "/health") return health(request, response);
    if (request.path == "/ready") return ready(response);
    answer(response, 404, "not found");
  }

  static void health(const httplib::Request& request, httplib::Response& response) {
    if (request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS") {
      return answer(response, 200, "OK");
    }
    response.set_header("Allow", "GET, HEAD, OPTIONS");
    answer(response, 405, "method not allowed");
  }

  void ready(httplib::Response& response) const {
    for (const ReadinessCheck& check : checks_) {
      if (const auto result = check.check(); !result.ok()) {
        return answer(
            response, 503,
            fmt::format("readiness check {} failed: {}", check.name, result.error().message));
      }
    }
    answer(response, 200, "Ready");
  }

  const std::vector<ReadinessCheck> checks_;
};

/// A listening socket on all addresses: IPv6 and IPv4, or IPv4 alone where there is no IPv6.
/// Returns -1 with errno.
socket_t listen_on(int port) {
  const int yes = 1;
  const int no = 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  any6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  any4.sin_port = any6.sin6_port;
  const std::pair<const sockaddr*, socklen_t> addresses[] = {
      {reinterpret_cast<const sockaddr*>(&any6), sizeof any6},
      {reinterpret_cast<const sockaddr*>(&any4), sizeof any4}};
  for (const auto& [address, size] : addresses) {
    const socket_t socket = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (address->sa_family == AF_INET6) {
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    }
    if (bind(socket, address, size) == 0 && listen(socket, kBacklog) == 0) return socket;
    const int why = errno;
    ::close(socket);
    errno = why;
    if (why == EADDRINUSE || why == EACCES) return -1;
  }
  return -1;
}

int port_of(socket_t socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  // The port has the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

class HealthServer::Impl {
 public:
  Impl(socket_t listener, std::vector<ReadinessCheck> checks, Clock& clock,
       Duration connection_time)
      : listener_(listener),
        port_(port_of(listener)),
        clock_(clock),
        connection_time_(connection_time),
        server_(std::move(checks)) {
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
      const socket_t socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
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
      BoundedStream stream(item->socket, clock_, item->accepted + connection_time_);
      serve(stream);
      connections_.close(item->socket);
    }
  }

  void serve(BoundedStream& stream) {
    try {
      server_.serve(stream);
    } catch (const std::exception& e) {  // the parser may throw; the next request may be better
      log::debug("health: request not served: {}", e.what());
    }
  }

  const socket_t listener_;
  const int port_;
  Clock& clock_;
  const Duration connection_time_;
  ProbeServer server_;
  Connections connections_{};
  Mutex join_mutex_;
  std::vector<std::jthread> threads_{};
};

HealthServer::HealthServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthServer::~HealthServer() = default;

Result<std::unique_ptr<HealthServer>> HealthServer::start(int port,
                                                          std::vector<ReadinessCheck> checks,
                                                          Clock& clock, Duration connection_time) {
  const socket_t listener = listen_on(port);
  if (listener < 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = fmt::format("listen on port {}: {}", port,
                                        std::generic_category().message(errno))};
  }
  auto impl = std::make_unique<Impl>(listener, std::move(checks), clock, connection_time);
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

int HealthServer::port() const { return impl_->port(); }

void HealthServer::stop() { impl_->stop(); }

}  // namespace lpp::app
