// SPDX-License-Identifier: Apache-2.0
#include "harness/fault_proxy.h"

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/api_path.h"
#include "harness/fault_proxy_hooks.h"
#include "harness/proxy_connection.h"
#include "k8s/base64.h"

namespace lpp::testing {

Decision Decision::reply(int status, std::string reason,
                         std::optional<std::chrono::seconds> retry_after) {
  if (reason.empty()) reason = status_reason(status);
  if (reason.empty()) reason = "Unknown";
  return {.kind = Kind::kReply,
          .status = status,
          .reason = std::move(reason),
          .retry_after = retry_after};
}

Result<std::unique_ptr<FaultProxy>> FaultProxy::start(Upstream upstream) {
  // Writing to a connection that the other side has closed must be an error, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  const TestCa ca("test proxy authority");
  LPP_ASSIGN_OR_RETURN(SslContext server,
                       server_context(ca.server({"IP:127.0.0.1", "DNS:localhost"})), "proxy");
  LPP_ASSIGN_OR_RETURN(SslContext client, client_context(upstream.ca_pem), "proxy");
  LPP_ASSIGN_OR_RETURN(Listener listener, listen_on(), "proxy");
  return std::unique_ptr<FaultProxy>(new FaultProxy(
      std::move(upstream), ca.pem(), std::move(server), std::move(client), std::move(listener)));
}

FaultProxy::FaultProxy(Upstream upstream, std::string ca_pem, SslContext server, SslContext client,
                       Listener listener)
    : upstream_(std::move(upstream)),
      ca_pem_(std::move(ca_pem)),
      server_context_(std::move(server)),
      client_context_(std::move(client)),
      hooks_(std::make_shared<HookSet>()),
      acceptor_("proxy", std::move(listener),
                [this](UniqueFd socket) { return serve(std::move(socket)); }) {}

FaultProxy::~FaultProxy() { stop(); }

std::unique_ptr<Served> FaultProxy::serve(UniqueFd client) {
  if (refusing_) return nullptr;
  return std::make_unique<Connection>(*this, std::move(client));
}

void FaultProxy::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  acceptor_.stop();
}

void FaultProxy::cut_connections() {
  acceptor_.for_each([](Served& one) { one.end(); });
}

void FaultProxy::set_hooks(ProxyHooks hooks) {
  auto next = std::make_shared<HookSet>();
  next->hooks = std::move(hooks);
  MutexLock lock(mutex_);
  std::swap(next, hooks_);
  while (next->running > 0) changed_.wait(mutex_);
}

void FaultProxy::release_hung() {
  MutexLock lock(mutex_);
  held_from_ = next_sequence_;
  changed_.notify_all();
}

void FaultProxy::wait_for_release(const ApiRequest& request, const std::function<bool()>& gone) {
  MutexLock lock(mutex_);
  while (request.sequence >= held_from_ && !stopping_) {
    lock.unlock();
    const bool over = gone();
    lock.lock();
    if (over) return;
    changed_.wait_until(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  }
}

void FaultProxy::wait_delay(std::chrono::milliseconds delay) {
  const auto deadline = std::chrono::steady_clock::now() + delay;
  MutexLock lock(mutex_);
  while (!stopping_ && std::chrono::steady_clock::now() < deadline) {
    changed_.wait_until(mutex_, deadline);
  }
}

ApiRequest FaultProxy::record(ApiRequest request) {
  MutexLock lock(mutex_);
  request.sequence = next_sequence_++;
  records_.push_back({.request = request, .arrived = SystemClock().now()});
  changed_.notify_all();
  return request;
}

void FaultProxy::set_status(std::uint64_t sequence, int status) {
  MutexLock lock(mutex_);
  if (sequence < first_recorded_) return;
  records_[sequence - first_recorded_].status = status;
  changed_.notify_all();
}

std::vector<ProxyRecord> FaultProxy::records() const {
  MutexLock lock(mutex_);
  return records_;
}

void FaultProxy::clear_records() {
  MutexLock lock(mutex_);
  records_.clear();
  first_recorded_ = next_sequence_;
}

bool FaultProxy::wait_for_record(const std::function<bool(const ProxyRecord&)>& condition,
                                 std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (true) {
    for (const auto& record : records_) {
      if (condition(record)) return true;
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    changed_.wait_until(mutex_, deadline);
  }
}

Result<void> FaultProxy::write_kubeconfig(const std::string& file, const std::string& token) const {
  using nlohmann::json;
  const json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"current-context", "proxy"},
      {"clusters",
       json::array({{{"name", "proxy"},
                     {"cluster",
                      {{"server", "https://127.0.0.1:" + std::to_string(port())},
                       {"certificate-authority-data", k8s::base64_encode(ca_pem_)}}}}})},
      {"users", json::array({{{"name", "daemon"}, {"user", {{"token", token}}}}})},
      {"contexts",
       json::array({{{"name", "proxy"}, {"context", {{"cluster", "proxy"}, {"user", "daemon"}}}}})},
  };
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << config.dump(2) << '\n';
  out.close();
  if (!out) return Error{.code = ErrorCode::kInternal, .message = file + ": cannot be written"};
  return {};
}

}  // namespace lpp::testing
