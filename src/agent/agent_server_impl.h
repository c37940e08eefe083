// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "agent/agent_server.h"
#include "agent/http_request.h"
#include "agent/server_jobs.h"
#include "agent/tls_socket.h"
#include "base/sync.h"
#include "base/token_bucket.h"

// Of agent_server.cpp (connections) and server_requests.cpp (what is asked on them).

namespace lpp::agent {

class AgentServer::Impl {
 public:
  Impl(UniqueFd listener, const Settings& settings, AgentExecutor& executor,
       Authenticate authenticate, std::function<bool()> leads, Clock& clock);
  ~Impl() { stop(); }

  Result<void> use(const std::string& certificate, const std::string& key) {
    LPP_ASSIGN_OR_RETURN(auto tls, make_server_tls(certificate, key), "agents' server");
    MutexLock lock(mutex_);
    tls_ = std::move(tls);
    return {};
  }
  int port() const { return port_; }
  ServerCounts counts() const {
    const auto left_out = executor_.left_out();
    MutexLock lock(mutex_);
    ServerCounts counts = counts_;
    for (const auto& [reason, count] : left_out) counts.refused[reason] += count;
    return counts;
  }
  void stop() {
    if (!loop_.joinable()) return;
    loop_.request_stop();
    mail_->post([] {});
    loop_.join();
    proofs_.stop();
    jobs_.stop();
  }

 private:
  // Of epoll; connections have greater ones.
  static constexpr std::uint64_t kListener = 0;
  static constexpr std::uint64_t kMail = 1;

  enum class Stage { kHandshake, kHead, kProving, kBody, kPending, kWriting, kDraining };
  struct Connection {
    Connection(std::uint64_t number, UniqueFd fd, const std::shared_ptr<ssl_ctx_st>& tls)
        : id(number), socket(std::move(fd), tls) {}
    const std::uint64_t id;
    TlsSocket socket;
    Stage stage = Stage::kHandshake;
    TimePoint deadline{};
    std::uint32_t interest = EPOLLIN | EPOLLRDHUP;
    std::string in{};
    std::string out{};
    std::string_view unwritten{};
    bool close_after = false;
    HttpHead head{};
    std::uint64_t request = 0;  // number of the one in work
    std::string token{};        // the one that was shown
    bool proved = false;
    TimePoint proved_until{};
    AgentIdentity who{};
    std::optional<AgentExecutor::Ticket> ticket{};  // of the poll in work
  };
  struct Node {
    TokenBucket requests;
    std::vector<std::uint64_t> connections{};  // the oldest first
  };

  void watch(int fd, std::uint64_t id, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.u64 = id}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void want(Connection& one, std::uint32_t events) const {
    events |= EPOLLRDHUP;
    if (one.interest == events) return;
    one.interest = events;
    epoll_event event{.events = events, .data = {.u64 = one.id}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, one.socket.fd(), &event);
  }
  Connection* find(std::uint64_t id) {
    const auto it = connections_.find(id);
    return it == connections_.end() ? nullptr : it->second.get();
  }
  std::shared_ptr<ssl_ctx_st> tls() const {
    MutexLock lock(mutex_);
    return tls_;
  }
  void count_request(const char* what) {
    MutexLock lock(mutex_);
    ++counts_.requests[what];
  }
  void count_refused(const std::string& reason) {
    MutexLock lock(mutex_);
    ++counts_.refused[reason];
  }
  void count_connections() {
    MutexLock lock(mutex_);
    counts_.connections = connections_.size();
  }

  void run(const std::stop_token& stop);
  void accept_all();
  void make_room();
  void serve(Connection& one, std::uint32_t events);
  void advance(Connection& one);
  /// False when nothing more can be done now, or the connection is gone.
  bool step(Connection& one);
  bool read_head(Connection& one);
  bool read_more(Connection& one, std::size_t most);
  bool write_more(Connection& one);
  void on_head(Connection& one);
  void on_identity(std::uint64_t id, std::uint64_t request, Result<AgentIdentity> who);
  /// In the log, once in a while.
  void say_refused(const Connection& one, const Error& why);
  bool is_admitted(Connection& one);
  void on_body(Connection& one);
  void handle(std::uint64_t id, std::uint64_t request, const std::string& target,
              const AgentIdentity& who, const std::string& body);
  void reply(std::uint64_t id, std::uint64_t request, Result<std::string> answer);
  void refuse(Connection& one, const Error& error, bool close_after);
  void answer(Connection& one, int status, std::string_view body, bool close_after);
  void close(Connection& one);
  void sweep(TimePoint now);

  const Settings settings_;
  AgentExecutor& executor_;
  const Authenticate authenticate_;
  const std::function<bool()> leads_;
  Clock& clock_;
  const UniqueFd listener_;
  const int port_;
  const UniqueFd epoll_;
  const std::shared_ptr<Mailbox> mail_ = std::make_shared<Mailbox>();
  /// Apart, so that whoever sends bad tokens keeps no agent waiting that is known. No more can wait
  /// of agents than have connections.
  Jobs proofs_{"agent-auth", 2, 256};
  Jobs jobs_{"agent-jobs", 2, 10'000};
  mutable Mutex mutex_;
  ServerCounts counts_ LPP_GUARDED_BY(mutex_);

  std::shared_ptr<ssl_ctx_st> tls_ LPP_GUARDED_BY(mutex_);

  // Of the loop's thread.
  std::uint64_t last_id_ = kMail;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::size_t unproved_ = 0;
  std::unordered_map<std::string, Node> nodes_;
  std::optional<TimePoint> refusal_said_;
  std::uint64_t refusals_unsaid_ = 0;  // since then
  std::jthread loop_;
};

}  // namespace lpp::agent
