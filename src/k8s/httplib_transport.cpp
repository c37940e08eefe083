// SPDX-License-Identifier: Apache-2.0
#include "k8s/httplib_transport.h"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <sys/utsname.h>

#include <csignal>
#include <mutex>

#include "base/log.h"
#include "base/strings.h"
#include "k8s/authenticator.h"
#include "k8s/call_guard.h"
#include "k8s/client_pool.h"
#include "k8s/dial.h"
#include "k8s/proxy.h"
#include "k8s/tls_context.h"
#include "k8s/wire_stream.h"

namespace lpp::k8s {

namespace {

// The API server closes idle connections after 90 s; ours are given up well before (a request on a
// connection that is being closed fails).
constexpr std::chrono::seconds kMaxIdle{60};
constexpr std::size_t kMaxBody = std::size_t{256} << 20U;
constexpr std::size_t kMaxErrorBody = std::size_t{1} << 20U;
// The guard ends every wait in time; the library's own limits must only not be in its way.
constexpr time_t kLibraryTimeoutSeconds = 24L * 3600;

/// How one attempt on one connection went.
struct Attempt {
  Result<Response> result;
  bool repeatable =
      false;  // failed on a reused connection before an answer: perhaps closed by then
};

/// One connection and what is needed to make it: the library's client with our own way to connect.
/// Used by one call at a time.
class Connection {
 public:
  Connection(DialTarget target, std::shared_ptr<const TlsContext> tls, Resolver& resolver,
             const Clock& clock)
      : target_(std::move(target)), tls_(std::move(tls)), resolver_(resolver), clock_(clock) {}
  virtual ~Connection() = default;

  const std::shared_ptr<const TlsContext>& tls() const { return tls_; }

  /// False when the other end has closed it or sent something unasked for.
  bool quiet() const {
    if (!drained_) return false;
    pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return socket_.get() >= 0 && ::poll(&entry, 1, 0) == 0;
  }

  /// Sends and receives; the call must not be attached to another connection. Calls `connected`
  /// when the connection stands, before anything is sent.
  bool send(httplib::Request& request, httplib::Response& response, httplib::Error& error,
            CallGuard::Call& call, const std::function<void()>& connected) {
    call_ = &call;
    connected_ = &connected;
    reused_ = socket_.get() >= 0;
    connect_error_.reset();
    if (reused_) call.attach(socket_.get());
    take_tls_error();  // of whatever this thread did before
    const bool sent = client().send(request, response, error);
    tls_error_ = take_tls_error();
    call_ = nullptr;
    connected_ = nullptr;
    return sent;
  }

  /// True when no new socket was made for the last send().
  bool reused() const { return reused_; }
  /// Why no socket came about, if that was the reason.
  const std::optional<Error>& connect_error() const { return connect_error_; }
  /// Why the server was not trusted; written by the handshake.
  std::string& verify_error() { return verify_error_; }
  /// What TLS says about a failed send(), such as the other side's alert.
  const std::string& tls_error() const { return tls_error_; }

  virtual httplib::ClientImpl& client() = 0;

 protected:
  /// A socket for the library, which closes it; a duplicate stays here for the guard.
  int connect() {
    reused_ = false;
    drained_ = true;
    socket_.reset();
    auto fd = dial(target_, resolver_, clock_, *call_);
    if (!fd.ok()) {
      connect_error_ = std::move(fd).error();
      return -1;
    }
    socket_.reset(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
    if (socket_.get() < 0) {
      // Without it nothing could end the call at its deadline.
      connect_error_ = Error{.code = ErrorCode::kUnavailable,
                             .message = "no file descriptor is left for a connection",
                             .reason = std::string(kConnectFailed)};
      return -1;
    }
    call_->attach(socket_.get());
    return fd->release();
  }

  void connected() const { (*connected_)(); }

  /// Whether nothing came after the last answer.
  void set_drained(bool drained) { drained_ = drained; }

 private:
  const DialTarget target_;
  const std::shared_ptr<const TlsContext> tls_;  // null for http
  Resolver& resolver_;
  const Clock& clock_;
  CallGuard::Call* call_ = nullptr;
  const std::function<void()>* connected_ = nullptr;
  UniqueFd socket_;
  bool reused_ = false;
  bool drained_ = true;
  std::optional<Error> connect_error_;
  std::string verify_error_;
  std::string tls_error_;
};

/// Base is httplib::ClientImpl or httplib::SSLClient.
template <typename Base>
class HttplibConnection final : public Connection {
 public:
  HttplibConnection(const std::string& sni, DialTarget target,
                    std::shared_ptr<const TlsContext> tls, Resolver& resolver, const Clock& clock)
      : Connection(target, std::move(tls), resolver, clock), client_(sni, target.port, *this) {
    client_.set_keep_alive(true);
    client_.set_url_encode(false);
    client_.set_decompress(false);
    client_.set_tcp_nodelay(true);
    client_.set_connection_timeout(kLibraryTimeoutSeconds);
    client_.set_read_timeout(kLibraryTimeoutSeconds);
    client_.set_write_timeout(kLibraryTimeoutSeconds);
  }

  Result<void> prepare_tls() {
    // The handshake itself verifies, as TlsContext says; the library's own check after it would
    // also trust the system's roots.
    client_.enable_server_certificate_verification(false);
    return tls()->configure(client_.ssl_context(), &verify_error());
  }

  httplib::ClientImpl& client() override { return client_; }

 private:
  class Client final : public Base {
   public:
    Client(const std::string& host, int port, HttplibConnection& owner)
        : Base(host, port), owner_(owner) {}

   private:
    bool create_and_connect_socket(httplib::ClientImpl::Socket& socket,
                                   httplib::Error& error) override {
      socket.sock = owner_.connect();
      if (socket.sock >= 0) return true;
      error = httplib::Error::Connection;
      return false;
    }

    /// Lets the library send a request and receive its answer.
    bool process_socket(const httplib::ClientImpl::Socket& socket,
                        std::function<bool(httplib::Stream&)> use) override {
      owner_.connected();
      WireStream stream(socket.sock, socket.ssl);
      const bool done = use(stream);
      // After "Connection: close" the library has freed what the stream reads from.
      owner_.set_drained(socket.is_open() && stream.is_drained());
      return done;
    }

    HttplibConnection& owner_;
  };

  Client client_;
};

std::optional<std::chrono::seconds> parse_retry_after(const std::string& text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  if (text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::chrono::seconds(std::stol(text));
}

/// The part before the slash becomes the field manager of what we write.
std::string default_user_agent() {
  utsname system{};
  ::uname(&system);
  return fmt::format("local-path-provisioner/unknown (linux/{})", system.machine);
}

/// Where a response goes while it arrives.
struct Receiver {
  Response response{};
  bool answered = false;  // the status and the headers have come
  bool too_long = false;
  bool sink_ended = false;
};

/// Where the body of a 2xx answer goes: into the Response, or to a sink.
struct Body {
  const ChunkSink* sink = nullptr;
  bool has_end = true;  // and must be there by the deadline; a stream has none
};

class HttplibTransport final : public Transport {
 public:
  HttplibTransport(const RestConfig& config, Clock& clock, std::optional<ProxyUrl> proxy,
                   std::unique_ptr<Authenticator> authenticator)
      : config_(config),
        clock_(clock),
        authenticator_(std::move(authenticator)),
        tls_(config, clock),
        resolver_(clock),
        pool_(clock, kMaxIdle),
        guard_(clock) {
    target_.host = config.host;
    target_.port = config.port;
    if (proxy) {
      target_.proxy_host = proxy->host;
      target_.proxy_port = proxy->port;
      target_.proxy_authorization = proxy->authorization;
    }
    const bool default_port = config.port == (config.https ? 443 : 80);
    host_header_ = host_and_port(config.host, config.port);
    if (default_port) host_header_.resize(host_header_.rfind(':'));
    user_agent_ = config.user_agent.empty() ? default_user_agent() : config.user_agent;
    // SNI carries names only (RFC 6066), without the root's dot.
    sni_ = config.tls_server_name.empty() ? config.host : config.tls_server_name;
    while (sni_.ends_with('.')) sni_.pop_back();
    if (sni_.find(':') != std::string::npos ||
        sni_.find_first_not_of("0123456789.") == std::string::npos) {
      sni_.clear();
    }
  }

  /// Finds out now whether connections can be configured.
  Result<void> check() {
    if (!config_.https) return {};
    LPP_ASSIGN_OR_RETURN(const auto tls, tls_.current(), "TLS");
    LPP_ASSIGN_OR_RETURN(const ConnectionPtr trial, make_connection(tls), "TLS");
    return {};
  }

  Result<Response> round_trip(const Request& request, const std::stop_token& stop) override {
    return call(request, {}, stop);
  }

  Result<Response> receive(const Request& request, const ChunkSink& sink,
                           const std::stop_token& stop) override {
    return call(request, {.sink = &sink}, stop);
  }

  Result<Response> stream(const Request& request, const ChunkSink& sink,
                          const std::stop_token& stop) override {
    return call(request, {.sink = &sink, .has_end = false}, stop);
  }

 private:
  using ConnectionPtr = std::unique_ptr<Connection>;

  Result<Response> call(const Request& request, const Body& body, const std::stop_token& stop) {
    if (stop.stop_requested()) return cancelled();
    CallGuard::Call call(guard_, clock_.now() + request.timeout, stop);
    LPP_ASSIGN_OR_RETURN(Credentials credentials,
                         authenticator_->credentials(call.deadline(), stop), "authenticate");
    auto tls = current_tls(credentials);
    if (!tls.ok()) return std::move(tls).error();
    // Only a connection that was open before can have been closed by the server unnoticed; reading
    // again on a fresh one is harmless, writing again is not.
    auto connection =
        pool_.take([&](const Connection& idle) { return idle.tls() == *tls && idle.quiet(); });
    if (connection != nullptr) {
      Attempt first = attempt(std::move(connection), request, credentials, body, call);
      if (!first.repeatable || request.method != "GET") return std::move(first.result);
    }
    LPP_ASSIGN_OR_RETURN(connection, make_connection(*tls), "connect");
    return attempt(std::move(connection), request, credentials, body, call).result;
  }

  Result<std::shared_ptr<const TlsContext>> current_tls(const Credentials& credentials) {
    if (!config_.https) return std::shared_ptr<const TlsContext>();
    return tls_.current(credentials.client);
  }

  Result<ConnectionPtr> make_connection(const std::shared_ptr<const TlsContext>& tls) {
    if (tls == nullptr) {
      return ConnectionPtr(std::make_unique<HttplibConnection<httplib::ClientImpl>>(
          config_.host, target_, tls, resolver_, clock_));
    }
    auto connection = std::make_unique<HttplibConnection<httplib::SSLClient>>(sni_, target_, tls,
                                                                              resolver_, clock_);
    if (auto prepared = connection->prepare_tls(); !prepared.ok()) {
      return std::move(prepared).error();
    }
    return ConnectionPtr(std::move(connection));
  }

  httplib::Request build(const Request& request, const Credentials& credentials) const {
    httplib::Request built;
    built.method = request.method;
    built.path = config_.base_path + request.target;
    built.headers.emplace("Host", host_header_);
    built.headers.emplace("User-Agent", user_agent_);
    built.headers.emplace("Accept", request.accept);
    for (const auto& [name, value] : credentials.headers) built.headers.emplace(name, value);
    if (!request.body.empty()) {
      built.headers.emplace("Content-Type", request.content_type);
    }
    return built;
  }

  /// One request on this connection, which goes back to the pool if it can serve again.
  Attempt attempt(ConnectionPtr connection, const Request& request, const Credentials& credentials,
                  const Body& body, CallGuard::Call& call) {
    httplib::Request built = build(request, credentials);
    Receiver receiver;
    // The last moment before a write is out of our hands: after a sleep of the process its lease
    // may be another's. Without its body the server does nothing.
    built.content_length_ = request.body.size();
    if (!request.body.empty()) {
      built.content_provider_ = [&](std::size_t offset, std::size_t size, httplib::DataSink& wire) {
        return call.goes_on() && wire.write(request.body.data() + offset, size);
      };
    }
    // For a stream: silence is allowed from chunk to chunk, however long we take for one.
    const auto allow_silence = [&] {
      call.set_deadline(request.idle_timeout.count() == 0 ? TimePoint::max()
                                                          : clock_.now() + request.idle_timeout);
    };
    built.response_handler = [&](const httplib::Response& head) {
      receiver.answered = true;
      receiver.response.status = head.status;
      receiver.response.content_type = head.get_header_value("Content-Type");
      receiver.response.retry_after = parse_retry_after(head.get_header_value("Retry-After"));
      if (body.has_end) return true;
      if (head.status / 100 == 2) {
        allow_silence();
      } else {
        call.set_deadline(clock_.now() + request.timeout);
      }
      return true;
    };
    built.content_receiver = [&](const char* data, std::size_t size, std::uint64_t /*offset*/,
                                 std::uint64_t /*total*/) {
      if (call.ended() != CallGuard::Ended::kNo) return false;
      if (body.sink != nullptr && receiver.response.status / 100 == 2) {
        if (!body.has_end) call.set_deadline(TimePoint::max());
        receiver.sink_ended = !(*body.sink)({data, size});
        if (!body.has_end) allow_silence();
        return !receiver.sink_ended;
      }
      const std::size_t limit = receiver.response.status / 100 == 2 ? kMaxBody : kMaxErrorBody;
      receiver.too_long = receiver.response.body.size() + size > limit;
      if (!receiver.too_long) receiver.response.body.append(data, size);
      return !receiver.too_long;
    };
    httplib::Response response;
    auto error = httplib::Error::Unknown;
    // Some proxies hold the head of a stream's answer until there is something to go with it.
    const auto connected = [&] {
      if (!body.has_end && request.idle_timeout > request.timeout) allow_silence();
    };
    const bool complete = connection->send(built, response, error, call, connected);
    const auto ended = call.detach();
    Attempt made{.result = outcome(*connection, receiver, complete, response.status, error, ended)};
    made.repeatable = !made.result.ok() && connection->reused() && !receiver.answered &&
                      ended == CallGuard::Ended::kNo;
    if (made.result.ok() && made.result->status == 401) authenticator_->refused();
    // Whatever lost this connection (a partition, a NAT) has perhaps lost the idle ones too, and
    // each would cost a call its time: a lease is lost with two.
    if (ended == CallGuard::Ended::kDeadline && connection->reused() && !receiver.answered) {
      pool_.clear();
    }
    if (complete && ended == CallGuard::Ended::kNo && connection->quiet()) {
      pool_.give_back(std::move(connection));
    }
    return made;
  }

  Result<Response> outcome(Connection& connection, Receiver& receiver, bool complete, int status,
                           httplib::Error error, CallGuard::Ended ended) {
    if (complete || receiver.sink_ended) {
      Response response = std::move(receiver.response);
      response.status = receiver.answered ? response.status : status;  // 204 has no body to receive
      response.sent_on_reused_connection = connection.reused();
      return response;
    }
    if (ended == CallGuard::Ended::kStop) return cancelled();
    if (ended == CallGuard::Ended::kDeadline) {
      return Error{.code = ErrorCode::kTimeout,
                   .message = receiver.answered ? "the answer did not arrive in full in time"
                                                : "no answer in time"};
    }
    if (receiver.too_long) {
      return Error{.code = ErrorCode::kInternal, .message = "the answer is too long"};
    }
    if (connection.connect_error()) return *connection.connect_error();
    const std::string detail = connection.tls_error().empty() ? "" : ": " + connection.tls_error();
    if (error == httplib::Error::SSLConnection) {
      tls_.recheck_now();  // perhaps the server's authority or our certificate has been rotated
      const std::string& why = connection.verify_error();
      return Error{
          .code = ErrorCode::kUnavailable,
          .message = why.empty() ? "TLS handshake with " + host_header_ + " failed" + detail
                                 : "the certificate of " + host_header_ + " is not trusted: " + why,
          .reason = std::string(kConnectFailed)};
    }
    // A server that wants another client certificate may say so only now (TLS 1.3).
    if (!detail.empty()) tls_.recheck_now();
    return Error{
        .code = ErrorCode::kUnavailable,
        .message = "the connection to " + host_header_ + " was cut " +
                   (receiver.answered ? "in the middle of the answer" : "before an answer came") +
                   detail};
  }

  const RestConfig config_;
  Clock& clock_;
  DialTarget target_;
  std::string host_header_;
  std::string user_agent_;
  std::string sni_;
  std::unique_ptr<Authenticator> authenticator_;
  TlsProvider tls_;
  Resolver resolver_;
  ClientPool<Connection> pool_;
  CallGuard guard_;
};

/// A process that writes to a socket its peer has closed must get an error, not die: the library
/// does not see to that.
void ignore_sigpipe() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction current {};
    if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
      ::signal(SIGPIPE, SIG_IGN);
    }
  });
}

}  // namespace

Result<std::unique_ptr<Transport>> make_httplib_transport(const RestConfig& config, Clock& clock) {
  ignore_sigpipe();
  std::optional<ProxyUrl> proxy;
  if (!config.proxy_url.empty()) {
    LPP_ASSIGN_OR_RETURN(proxy, parse_proxy_url(config.proxy_url), config.source);
  }
  LPP_ASSIGN_OR_RETURN(auto authenticator, Authenticator::create(config, clock), config.source);
  auto transport =
      std::make_unique<HttplibTransport>(config, clock, proxy, std::move(authenticator));
  LPP_RETURN_IF_ERROR(transport->check(), config.source);
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace lpp::k8s
