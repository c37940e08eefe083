// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <list>
#include <system_error>
#include <thread>

#include "base/strings.h"
#include "base/sync.h"
#include "devcluster/apiserver/http_connection.h"
#include "harness/tls.h"

namespace lpp::devcluster {
namespace {

using Context = testing::SslContext;

Error socket_error(const std::string& what) {
  return Error{.code = ErrorCode::kUnavailable,
               .message = what + ": " + std::generic_category().message(errno)};
}

/// Only HTTP/1.1 is spoken, whatever the client offers first.
int choose_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned int in_size, void* /*argument*/) {
  static constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof(kHttp11), in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<Context> make_context(const testing::TestCertificate& certificate) {
  LPP_ASSIGN_OR_RETURN(Context context, testing::server_context(certificate), "server");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  return context;
}

int bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Options options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> start(const testing::TestCertificate& certificate) {
    std::signal(SIGPIPE, SIG_IGN);
    LPP_ASSIGN_OR_RETURN(context_, make_context(certificate), "TLS");
    LPP_RETURN_IF_ERROR(listen(), "listen on " + options_.address);
    acceptor_ = std::thread([this] { accept_all(); });
    return {};
  }

  int port() const { return port_; }

  void refuse_more() { stopping_ = true; }

  void stop() {
    refuse_more();
    if (listener_ >= 0) ::shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    std::list<Served> served;
    {
      const MutexLock lock(mutex_);
      served.swap(served_);
    }
    for (auto& one : served) one.connection->shut_down();
    for (auto& one : served) one.thread.join();
    if (listener_ >= 0) ::close(listener_);
    listener_ = -1;
  }

  void cut_all() {
    const MutexLock lock(mutex_);
    for (auto& one : served_) one.connection->cut_soon();
  }

  std::size_t connections() const {
    const MutexLock lock(mutex_);
    std::size_t count = 0;
    for (const auto& one : served_) count += one.connection->done() ? 0 : 1;
    return count;
  }

 private:
  struct Served {
    std::unique_ptr<HttpConnection> connection;
    std::thread thread;
  };

  Result<void> listen() {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(options_.address.c_str(), std::to_string(options_.port).c_str(), &hints,
                      &found) != 0) {
      return invalid("not an IP address");
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, ::freeaddrinfo);
    listener_ = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0) return socket_error("socket");
    const int yes = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(listener_, address->ai_addr, address->ai_addrlen) != 0) {
      return socket_error("port " + std::to_string(options_.port));
    }
    if (::listen(listener_, SOMAXCONN) != 0) return socket_error("listen");
    port_ = bound_port(listener_);
    return {};
  }

  void accept_all() {
    set_thread_name("api-accept");
    while (!stopping_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) {
        if (stopping_) return;
        if (errno == EMFILE || errno == ENFILE) {
          pollfd none{};
          ::poll(&none, 0, 10);  // out of descriptors: let some connections end
        }
        continue;
      }
      const int yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      serve(fd);
    }
  }

  void serve(int fd) {
    std::list<Served> ended;
    auto connection =
        std::make_unique<HttpConnection>(fd, context_.get(), options_, handler_, stopping_);
    auto* running = connection.get();
    std::thread thread([running] {
      set_thread_name("api-conn");
      running->run();
    });
    {
      const MutexLock lock(mutex_);
      for (auto it = served_.begin(); it != served_.end();) {
        const auto next = std::next(it);
        if (it->connection->done()) ended.splice(ended.end(), served_, it);
        it = next;
      }
      served_.push_back({std::move(connection), std::move(thread)});
    }
    for (auto& one : ended) one.thread.join();
  }

  // Constant after start().
  const Options options_;
  const Handler handler_;
  Context context_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;

  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  std::list<Served> served_ LPP_GUARDED_BY(mutex_);
};

HttpServer::HttpServer(Options options, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
Result<void> HttpServer::start(const testing::TestCertificate& certificate) {
  return impl_->start(certificate);
}
int HttpServer::port() const { return impl_->port(); }
void HttpServer::refuse_more() { impl_->refuse_more(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::cut_all() { impl_->cut_all(); }
std::size_t HttpServer::connections() const { return impl_->connections(); }

}  // namespace lpp::devcluster
