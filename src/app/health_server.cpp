// SPDX-License-Identifier: Apache-2.0
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

void answer(httplib::Response& response, int status, const std::string& text,
            const std::string& content_type = "text/plain; charset=utf-8") {
  response.status = status;
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Cache-Control", "no-store");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  response.set_content(text, content_type.c_str());
}

/// The library's HTTP parser with our own connections and answers.
class ProbeServer final : public httplib::Server {
 public:
  explicit ProbeServer(HealthEndpoints endpoints) : endpoints_(std::move(endpoints)) {
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
    // A compressor's memory is many times that of what it would compress here.
    process_request(stream, /*close_connection=*/true, closed,
                    [](httplib::Request& request) { request.headers.erase("Accept-Encoding"); });
    stream.finish();
  }

 private:
  void route(const httplib::Request& request, httplib::Response& response) const {
    const std::string& path = request.path;
    if (path == "/ready") return ready(response);
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (path == "/health") {
      if (reads || request.method == "OPTIONS") return health(response);
      return refuse_method(response, "GET, HEAD, OPTIONS");
    }
    const auto page = std::find_if(endpoints_.pages.begin(), endpoints_.pages.end(),
                                   [&](const HealthPage& one) { return one.path == path; });
    const bool is_page = page != endpoints_.pages.end();
    const bool live = path == "/livez" || path == "/healthz";
    const bool readiness = path == "/readyz" || path == "/healthz";
    if (!is_page && !live && !readiness) return answer(response, 404, "not found");
    if (!reads) return refuse_method(response, "GET, HEAD");
    if (is_page) return answer(response, 200, page->render(), page->content_type);
    const CheckReport report = run_checks(path.substr(1), live ? &endpoints_.live : nullptr,
                                          readiness ? &endpoints_.ready : nullptr, request.params);
    const bool verbose = !report.ok || request.has_param("verbose");
    answer(response, report.ok ? 200 : 500, verbose ? report.text : "ok");
  }

  static void refuse_method(httplib::Response& response, const char* allowed) {
    response.set_header("Allow", allowed);
    answer(response, 405, "method not allowed");
  }

  void health(httplib::Response& response) const {
    answer_first_failure(response, endpoints_.live, "health", "OK");
  }

  void ready(httplib::Response& response) const {
    answer_first_failure(response, endpoints_.ready, "readiness", "Ready");
  }

  static void answer_first_failure(httplib::Response& response,
                                   const std::vector<HealthCheck>& checks, std::string_view what,
                                   const std::string& ok) {
    for (const HealthCheck& check : checks) {
      if (const auto result = check.check(); !result.ok()) {
        return answer(
            response, 503,
            fmt::format("{} check {} failed: {}", what, check.name, result.error().message));
      }
    }
    answer(response, 200, ok);
  }

  struct CheckReport {
    bool ok = true;
    std::string text{};
  };

  /// The lines of Kubernetes' own components, except that the reason is not withheld.
  static CheckReport run_checks(const std::string& what, const std::vector<HealthCheck>* live,
                                const std::vector<HealthCheck>* ready,
                                const httplib::Params& params) {
    std::set<std::string> excluded;
    const auto [begin, end] = params.equal_range("exclude");
    for (auto it = begin; it != end; ++it) excluded.insert(it->second);
    CheckReport report{.text = "[+]ping ok\n"};
    for (const auto* checks : {live, ready}) {
      if (checks == nullptr) continue;
      for (const HealthCheck& check : *checks) {
        if (excluded.contains(check.name)) {
          report.text += "[+]" + check.name + " excluded: ok\n";
          continue;
        }
        const auto result = check.check();
        report.ok = report.ok && result.ok();
        report.text += result.ok()
                           ? "[+]" + check.name + " ok\n"
                           : "[-]" + check.name + " failed: " + result.error().message + "\n";
      }
    }
    report.text += what + (report.ok ? " check passed\n" : " check failed\n");
    return report;
  }

  const HealthEndpoints endpoints_;
};

}  // namespace

class HealthServer::Impl {
 public:
  Impl(socket_t listener, HealthEndpoints endpoints, Clock& clock, Duration connection_time)
      : listener_(listener),
        port_(port_of(listener)),
        clock_(clock),
        connection_time_(connection_time),
        server_(std::move(endpoints)) {
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

Result<std::unique_ptr<HealthServer>> HealthServer::start(int port, HealthEndpoints endpoints,
                                                          Clock& clock, Duration connection_time) {
  const socket_t listener = listen_on(port, kBacklog);
  if (listener < 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = fmt::format("listen on port {}: {}", port,
                                        std::generic_category().message(errno))};
  }
  auto impl = std::make_unique<Impl>(listener, std::move(endpoints), clock, connection_time);
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

int HealthServer::port() const { return impl_->port(); }

void HealthServer::stop() { impl_->stop(); }

}  // namespace lpp::app
