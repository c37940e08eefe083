// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "agent/agent_server_impl.h"
#include "base/listener.h"
#include "base/strings.h"

namespace lpp::agent {

namespace {

constexpr int kBacklog = 512;
constexpr int kAcceptsAtOnce = 64;
/// For the other side to read the last answer of a connection.
constexpr std::chrono::seconds kDrainFor{2};

/// A machine that is cut off says nothing: found out without sending.
void watch_peer(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

}  // namespace

AgentServer::Impl::Impl(UniqueFd listener, const Settings& settings, AgentExecutor& executor,
                        Authenticate authenticate, std::function<bool()> leads, Clock& clock)
    : settings_(settings),
      executor_(executor),
      authenticate_(std::move(authenticate)),
      leads_(std::move(leads)),
      clock_(clock),
      listener_(std::move(listener)),
      port_(port_of(listener_.get())),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  watch(listener_.get(), kListener, EPOLLIN);
  watch(mail_->fd(), kMail, EPOLLIN);
  loop_ = std::jthread([this](const std::stop_token& stop) {
    set_thread_name("agents");
    run(stop);
  });
}

void AgentServer::Impl::run(const std::stop_token& stop) {
  const Duration sweep_every =
      std::min<Duration>(std::chrono::seconds(1), settings_.request_time / 4);
  TimePoint next_sweep = clock_.now() + sweep_every;
  TimePoint next_tick = clock_.now();
  std::array<epoll_event, 64> events{};
  while (!stop.stop_requested()) {
    const TimePoint now = clock_.now();
    if (now >= next_tick) next_tick = now + executor_.tick();
    if (now >= next_sweep) {
      sweep(now);
      next_sweep = now + sweep_every;
    }
    const TimePoint next = connections_.empty() ? next_tick : std::min(next_tick, next_sweep);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(next - clock_.now(), Duration::zero()));
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(wait.count()));
    for (int i = 0; i < count; ++i) {
      const auto& event = events.at(static_cast<std::size_t>(i));
      if (event.data.u64 == kListener) {
        accept_all();
      } else if (event.data.u64 != kMail) {
        if (auto* const one = find(event.data.u64)) serve(*one, event.events);
      }
    }
    for (const auto& task : mail_->take()) task();
  }
  while (!connections_.empty()) close(*connections_.begin()->second);
}

void AgentServer::Impl::accept_all() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      // Without descriptors it would be told again and again that somebody waits.
      if (errno == EMFILE || errno == ENFILE) make_room();
      break;
    }
    const auto tls = this->tls();
    if (tls == nullptr) {
      count_refused("no_certificate");
      continue;
    }
    while (unproved_ >= settings_.most_unproved) make_room();
    watch_peer(socket.get());
    const int fd = socket.get();
    auto one = std::make_unique<Connection>(++last_id_, std::move(socket), tls);
    one->deadline = clock_.now() + settings_.request_time;
    watch(fd, one->id, one->interest);
    ++unproved_;
    connections_.emplace(one->id, std::move(one));
  }
  count_connections();
}

/// Ends the oldest connection of those that have proved nothing, else the oldest.
void AgentServer::Impl::make_room() {
  auto it = std::find_if(connections_.begin(), connections_.end(),
                         [](const auto& item) { return !item.second->proved; });
  if (it == connections_.end()) it = connections_.begin();
  if (it == connections_.end()) return;
  count_refused("connections");
  close(*it->second);
}

void AgentServer::Impl::serve(Connection& one, std::uint32_t events) {
  const bool reads = one.stage == Stage::kHandshake || one.stage == Stage::kHead ||
                     one.stage == Stage::kBody || one.stage == Stage::kDraining;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0 || ((events & EPOLLRDHUP) != 0 && !reads)) {
    close(one);
    return;
  }
  advance(one);
}

void AgentServer::Impl::advance(Connection& one) {
  while (step(one)) {
  }
}

bool AgentServer::Impl::step(Connection& one) {
  switch (one.stage) {
    case Stage::kHandshake: {
      const auto step = one.socket.accept();
      if (step == TlsSocket::Step::kDone) {
        one.stage = Stage::kHead;
        return true;
      }
      if (step == TlsSocket::Step::kClosed) {
        count_refused("handshake");
        close(one);
      } else {
        want(one, step == TlsSocket::Step::kWantRead ? EPOLLIN : EPOLLOUT);
      }
      return false;
    }
    case Stage::kHead: return read_head(one);
    case Stage::kBody: {
      const std::size_t whole = one.head.size + one.head.body;
      if (one.in.size() < whole) return read_more(one, whole - one.in.size());
      on_body(one);
      return false;
    }
    case Stage::kProving:
    case Stage::kPending: want(one, 0); return false;
    case Stage::kWriting: return write_more(one);
    case Stage::kDraining:
      if (one.socket.discard() == TlsSocket::Step::kClosed) {
        close(one);
      } else {
        want(one, EPOLLIN);
      }
      return false;
  }
  return false;
}

bool AgentServer::Impl::read_head(Connection& one) {
  auto head = parse_head(one.in);
  if (!head.ok()) {
    count_refused("malformed");
    refuse(one, head.error(), true);
    return true;
  }
  if (!*head) return read_more(one, kMaxHttpHead - one.in.size());
  one.head = **std::move(head);
  on_head(one);
  return true;
}

bool AgentServer::Impl::read_more(Connection& one, std::size_t most) {
  // From its first byte on, a request has its time.
  const bool is_first = one.in.empty();
  const auto step = one.socket.read(one.in, most);
  switch (step) {
    case TlsSocket::Step::kDone:
      if (is_first) one.deadline = clock_.now() + settings_.request_time;
      return true;
    case TlsSocket::Step::kClosed: close(one); return false;
    default: want(one, step == TlsSocket::Step::kWantRead ? EPOLLIN : EPOLLOUT); return false;
  }
}

bool AgentServer::Impl::write_more(Connection& one) {
  while (!one.unwritten.empty()) {
    const auto step = one.socket.write(one.unwritten);
    if (step == TlsSocket::Step::kDone) continue;
    if (step == TlsSocket::Step::kClosed) {
      close(one);
    } else {
      want(one, step == TlsSocket::Step::kWantRead ? EPOLLIN : EPOLLOUT);
    }
    return false;
  }
  one.out = {};
  if (one.close_after) {
    one.socket.close_writing();
    one.in = {};
    one.stage = Stage::kDraining;
    one.deadline = clock_.now() + kDrainFor;
  } else {
    one.stage = Stage::kHead;
    one.deadline = clock_.now() + (one.in.empty() ? settings_.idle_time : settings_.request_time);
  }
  return true;
}

void AgentServer::Impl::close(Connection& one) {
  const auto held = std::exchange(one.ticket, std::nullopt);
  const AgentIdentity who = one.who;
  if (one.proved) {
    std::erase(nodes_.at(who.node).connections, one.id);
  } else {
    --unproved_;
  }
  connections_.erase(one.id);
  count_connections();
  if (held) executor_.abandon(who, *held);
}

void AgentServer::Impl::sweep(TimePoint now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& one = *(it++)->second;
    if (now < one.deadline) continue;
    const bool idle = one.stage == Stage::kHead && one.in.empty();
    if (!idle && one.stage != Stage::kDraining) count_refused("timeout");
    close(one);
  }
  std::erase_if(nodes_, [&](const auto& item) {
    return item.second.connections.empty() && item.second.requests.full(now);
  });
}

Result<std::unique_ptr<AgentServer>> AgentServer::start(const Settings& settings,
                                                        AgentExecutor& executor,
                                                        Authenticate authenticate,
                                                        std::function<bool()> leads, Clock& clock) {
  UniqueFd listener(listen_on(settings.port, kBacklog));
  if (!listener.valid()) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = fmt::format("port {} for agents: {}", settings.port,
                                        std::error_code(errno, std::generic_category()).message())};
  }
  ::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<AgentServer>(new AgentServer(std::make_unique<Impl>(
      std::move(listener), settings, executor, std::move(authenticate), std::move(leads), clock)));
}

AgentServer::AgentServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AgentServer::~AgentServer() = default;
Result<void> AgentServer::use(const std::string& certificate, const std::string& key) {
  return impl_->use(certificate, key);
}
int AgentServer::port() const { return impl_->port(); }
ServerCounts AgentServer::counts() const { return impl_->counts(); }
void AgentServer::stop() { impl_->stop(); }

}  // namespace lpp::agent
