// SPDX-License-Identifier: Apache-2.0
#include "harness/test_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/strings.h"
#include "harness/loopback.h"
#include "harness/tls.h"

namespace lpp::testing {

namespace {

/// Accepts until `stopping`; each wait is short.
template <typename OnClient>
void accept_until(int listener, const std::atomic<bool>& stopping, const OnClient& on_client) {
  while (!stopping) {
    pollfd entry{.fd = listener, .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, 20) <= 0) continue;
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    on_client(fd);
  }
}

}  // namespace

bool Exchange::respond(int status, const std::string& body, const std::string& more_headers) {
  return send("HTTP/1.1 " + std::to_string(status) +
              " Text\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n" + more_headers + "\r\n" + body);
}

bool Exchange::begin_chunks(int status) {
  return send("HTTP/1.1 " + std::to_string(status) +
              " Text\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool Exchange::chunk(const std::string& bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string size;
  for (std::size_t n = bytes.size(); n > 0; n /= 16) size.insert(size.begin(), kHex[n % 16]);
  return send(size + "\r\n" + bytes + "\r\n");
}

bool Exchange::end_chunks() { return send("0\r\n\r\n"); }

/// One connection and its thread.
class TestServer::Peer final : public Exchange {
 public:
  Peer(TestServer& server, int fd, int number) : server_(server), fd_(fd) {
    request_.connection = number;
  }
  ~Peer() override {
    if (thread.joinable()) thread.join();
    SSL_free(ssl_);
    ::close(fd_);
  }

  bool handshake(SSL_CTX* context) {
    if (context == nullptr) return true;
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd_);
    if (SSL_accept(ssl_) != 1) return false;
    if (const char* name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name)) sni_ = name;
    if (X509* client = SSL_get1_peer_certificate(ssl_)) {
      std::array<char, 256> name{};
      X509_NAME_get_text_by_NID(X509_get_subject_name(client), NID_commonName, name.data(),
                                static_cast<int>(name.size()));
      client_name_ = name.data();
      X509_free(client);
    }
    return true;
  }

  bool read_request() {
    while (buffer_.find("\r\n\r\n") == std::string::npos) {
      if (!fill()) return false;
    }
    const auto end = buffer_.find("\r\n\r\n");
    const std::string head = buffer_.substr(0, end);
    buffer_.erase(0, end + 4);
    SeenRequest seen;
    seen.connection = request_.connection;
    seen.client_name = client_name_;
    seen.sni = sni_;
    bool first = true;
    for (const auto line : split(head, '\n')) {
      if (first) {
        const auto words = split(trim(line), ' ');
        seen.method = words[0];
        seen.target = words.size() > 1 ? words[1] : "";
        first = false;
        continue;
      }
      const auto colon = line.find(':');
      seen.headers.emplace(to_lower(line.substr(0, colon)), trim(line.substr(colon + 1)));
    }
    const std::string length = seen.header("content-length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (buffer_.size() < size) {
      if (!fill()) return false;
    }
    seen.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    request_ = std::move(seen);
    return true;
  }

  const SeenRequest& request() const override { return request_; }

  bool send(std::string_view bytes) override {
    MutexLock lock(write_mutex_);
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto rest = bytes.size() - sent;
      const long n = ssl_ != nullptr ? SSL_write(ssl_, bytes.data() + sent, static_cast<int>(rest))
                                     : ::send(fd_, bytes.data() + sent, rest, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

  void wait_for_close() override {
    while (!server_.stopping_) {
      pollfd entry{.fd = fd_, .events = POLLRDHUP, .revents = 0};
      if (::poll(&entry, 1, 10) > 0) return;
    }
  }

  bool pause(std::chrono::milliseconds time) override {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!server_.stopping_ && std::chrono::steady_clock::now() < end) {
      ::poll(nullptr, 0, 5);
    }
    return !server_.stopping_;
  }

  /// What a server does to an idle connection.
  void close_properly() {
    MutexLock lock(write_mutex_);
    if (ssl_ != nullptr && SSL_is_init_finished(ssl_) != 0) SSL_shutdown(ssl_);
    ::shutdown(fd_, SHUT_WR);
    // Until the end has been acknowledged.
    tcp_info info{};
    do {
      ::poll(nullptr, 0, 1);
      socklen_t size = sizeof info;
      if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    } while (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_FIN_WAIT1);
  }

  void cut() { ::shutdown(fd_, SHUT_RDWR); }

  std::thread thread;

 private:
  bool fill() {
    std::array<char, 4096> bytes{};
    // Waits without the write lock, so that close_properly() can come in between.
    while (ssl_ == nullptr || SSL_pending(ssl_) == 0) {
      if (server_.stopping_) return false;
      pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 10) > 0) break;
    }
    long n = 0;
    if (ssl_ != nullptr) {
      MutexLock lock(write_mutex_);
      n = SSL_read(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    } else {
      n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    }
    if (n <= 0) return false;
    buffer_.append(bytes.data(), static_cast<std::size_t>(n));
    return true;
  }

  TestServer& server_;
  const int fd_;
  SSL* ssl_ = nullptr;
  Mutex write_mutex_;
  std::string sni_;
  std::string client_name_;
  std::string buffer_;
  SeenRequest request_;
};

TestServer::TestServer(TestServerOptions options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {
  ::signal(SIGPIPE, SIG_IGN);
  const Listener listener = listen_on_loopback(options_.ipv6);
  listener_ = listener.fd;
  port_ = listener.port;
  if (listener_ < 0) return;
  if (options_.tls) set_certificate(options_.certificate);
  thread_ = std::thread([this] { accept_loop(); });
}

TestServer::~TestServer() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  std::vector<std::unique_ptr<Peer>> peers;
  {
    MutexLock lock(mutex_);
    peers.swap(peers_);
  }
  for (const auto& peer : peers) peer->cut();
  peers.clear();
  SSL_CTX_free(context_);
  if (listener_ >= 0) ::close(listener_);
}

std::vector<SeenRequest> TestServer::requests() const {
  MutexLock lock(mutex_);
  return requests_;
}

SeenRequest TestServer::last_request() const {
  MutexLock lock(mutex_);
  return requests_.back();
}

void TestServer::set_certificate(const TestCertificate& certificate) {
  MutexLock lock(mutex_);
  SSL_CTX_free(context_);
  context_ = server_context(certificate, options_.client_ca).value().release();
}

void TestServer::close_connections() {
  MutexLock lock(mutex_);
  for (const auto& peer : peers_) peer->close_properly();
}

void TestServer::accept_loop() {
  accept_until(listener_, stopping_, [this](int fd) {
    auto peer = std::make_unique<Peer>(*this, fd, ++connections_);
    Peer& served = *peer;
    MutexLock lock(mutex_);
    served.thread = std::thread([this, &served] { serve(served); });
    peers_.push_back(std::move(peer));
  });
}

void TestServer::serve(Peer& peer) {
  if (!options_.handshake || !options_.greeting.empty()) {
    if (!options_.greeting.empty()) peer.send(options_.greeting);
    peer.wait_for_close();
    return;
  }
  SSL_CTX* context = nullptr;
  {
    MutexLock lock(mutex_);
    context = context_;
    if (context != nullptr) SSL_CTX_up_ref(context);
  }
  const bool shaken = peer.handshake(context);
  SSL_CTX_free(context);
  while (shaken && !stopping_ && peer.read_request()) {
    {
      MutexLock lock(mutex_);
      requests_.push_back(peer.request());
    }
    if (!handler_(peer)) break;
  }
  ERR_clear_error();
  peer.cut();
}

TestProxy::TestProxy(std::string answer) : answer_(std::move(answer)) {
  const Listener listener = listen_on_loopback();
  listener_ = listener.fd;
  port_ = listener.port;
  thread_ = std::thread([this] {
    accept_until(listener_, stopping_, [this](int fd) {
      MutexLock lock(mutex_);
      tunnels_.emplace_back([this, fd] { serve(fd); });
    });
  });
}

TestProxy::~TestProxy() {
  stopping_ = true;
  thread_.join();
  MutexLock lock(mutex_);
  for (auto& tunnel : tunnels_) tunnel.join();
  ::close(listener_);
}

std::vector<std::string> TestProxy::heads() const {
  MutexLock lock(mutex_);
  return heads_;
}

void TestProxy::serve(int client) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1) head += byte;
  {
    MutexLock lock(mutex_);
    heads_.push_back(head);
  }
  const std::string line = "HTTP/1.1 " + answer_ + "\r\nX-Proxy: test\r\n\r\n";
  ::send(client, line.data(), line.size(), MSG_NOSIGNAL);
  // "CONNECT host:port HTTP/1.1": whatever the host, the port is on loopback.
  const std::string target(split(head, ' ')[1]);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(std::stoi(target.substr(target.rfind(':') + 1)));
  bool open = answer_.starts_with("2") &&
              ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  while (open && !stopping_) {
    std::array<pollfd, 2> ends{pollfd{.fd = client, .events = POLLIN, .revents = 0},
                               pollfd{.fd = server, .events = POLLIN, .revents = 0}};
    if (::poll(ends.data(), ends.size(), 20) <= 0) continue;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].revents == 0) continue;
      std::array<char, 4096> bytes{};
      const auto n = ::recv(ends[i].fd, bytes.data(), bytes.size(), 0);
      open = open && n > 0 &&
             ::send(ends[1 - i].fd, bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
    }
  }
  ::close(server);
  ::close(client);
}

}  // namespace lpp::testing
