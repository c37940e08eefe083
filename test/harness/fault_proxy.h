// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "harness/acceptor.h"
#include "harness/api_request.h"
#include "harness/tls.h"

namespace lpp::testing {

/// The API server behind the proxy.
struct Upstream {
  std::string host = "127.0.0.1";  // numeric, or localhost
  int port = 0;
  std::string tls_server_name{};  // "" = host
  std::string ca_pem{};           // "" = trust it blindly
  std::string base_path{};        // put in front of every path
};

/// What becomes of one request.
struct Decision {
  enum class Kind {
    kForward,
    kReply,      // answered by the proxy; the API server never sees the request
    kCutBefore,  // connection reset; the API server never sees it
    kCutAfter,   // forwarded, then the connection is reset instead of an answer
    kHang,       // nothing happens until release_hung(), then it is forwarded
    kHangAfter,  // forwarded; the answer is held back until release_hung()
  };
  Kind kind = Kind::kForward;
  int status = 0;
  std::string reason{};
  std::optional<std::chrono::seconds> retry_after{};
  std::chrono::milliseconds delay{0};              // before anything else
  std::chrono::milliseconds answer_delay{0};       // once the API server has answered
  std::chrono::milliseconds pause{0};              // before each kilobyte or frame of the body
  std::size_t cut_body_after = std::string::npos;  // kForward: reset after so many body bytes

  static Decision forward() { return {}; }
  static Decision cut_before() { return {.kind = Kind::kCutBefore}; }
  static Decision cut_after() { return {.kind = Kind::kCutAfter}; }
  static Decision hang() { return {.kind = Kind::kHang}; }
  static Decision hang_after() { return {.kind = Kind::kHangAfter}; }
  static Decision after_delay(std::chrono::milliseconds delay) { return {.delay = delay}; }
  /// The answer is what was true when it was asked for, and comes when it may be so no more.
  static Decision late(std::chrono::milliseconds delay) { return {.answer_delay = delay}; }
  static Decision slow(std::chrono::milliseconds pause) { return {.pause = pause}; }
  static Decision truncate(std::size_t bytes) { return {.cut_body_after = bytes}; }
  /// A Status body with the usual reason for the code, e.g. 409 "Conflict".
  static Decision reply(int status, std::string reason = {},
                        std::optional<std::chrono::seconds> retry_after = {});
};

/// What becomes of one frame of a watch: a line of JSON, or a message of protobuf after its length.
enum class FrameAction {
  kForward,
  kDrop,
  kDuplicate,
  kCut,
  kTruncate,  // cut in the middle of it
};

/// Callbacks; each may be empty. They run on the connections' threads, several at a time, and may
/// block (e.g. until a process is dead). They must not call set_hooks() or stop().
struct ProxyHooks {
  std::function<Decision(const ApiRequest&)> before{};
  /// The API server has answered (a write is applied), nothing has been sent to the client yet.
  std::function<void(const ApiRequest&, int status)> after{};
  std::function<FrameAction(const ApiRequest&, std::string_view frame)> frame{};
};

/// A request and what came of it.
struct ProxyRecord {
  ApiRequest request;
  TimePoint arrived{};
  int status = 0;  // as sent to the client; 0 = no answer (yet, or the connection was cut)
};

/// A TLS-terminating HTTP/1.1 proxy on a loopback port between a client and an API server, which
/// breaks things on demand. Credentials in headers pass through untouched, so the client is to the
/// API server who it is. A thread per connection; all public methods are thread-safe.
class FaultProxy {
 public:
  static Result<std::unique_ptr<FaultProxy>> start(Upstream upstream);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  int port() const { return acceptor_.port(); }
  const std::string& ca_pem() const { return ca_pem_; }
  /// A kubeconfig (JSON) that leads here and authenticates with the token.
  Result<void> write_kubeconfig(const std::string& file, const std::string& token) const;

  /// Returns when no callback of the earlier hooks runs any more.
  void set_hooks(ProxyHooks hooks);

  /// Resets all connections now, watches included.
  void cut_connections();
  /// While set, new connections are accepted and reset at once.
  void refuse(bool refuse) { refusing_ = refuse; }
  /// Every request on record goes on, also one whose hook has not decided yet.
  void release_hung();

  std::vector<ProxyRecord> records() const;
  void clear_records();
  /// Waits until a record fulfils the condition; false after the time limit.
  bool wait_for_record(const std::function<bool(const ProxyRecord&)>& condition,
                       std::chrono::milliseconds limit) const;

  /// Ends everything within milliseconds. Repeatable.
  void stop();

 private:
  class Connection;
  struct HookSet;
  class HookUse;

  FaultProxy(Upstream upstream, std::string ca_pem, SslContext server, SslContext client,
             Listener listener);
  std::unique_ptr<Served> serve(UniqueFd client);
  ApiRequest record(ApiRequest request);
  void set_status(std::uint64_t sequence, int status);
  /// Waits until the request is released, the proxy stopped, or `gone` (asked every few
  /// milliseconds) true.
  void wait_for_release(const ApiRequest& request, const std::function<bool()>& gone);
  void wait_delay(std::chrono::milliseconds delay);

  const Upstream upstream_;
  const std::string ca_pem_;
  const SslContext server_context_;
  const SslContext client_context_;
  std::atomic<bool> refusing_ = false;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  std::uint64_t next_sequence_ LPP_GUARDED_BY(mutex_) = 1;
  std::uint64_t held_from_ LPP_GUARDED_BY(mutex_) = 1;  // the first sequence not released
  std::uint64_t first_recorded_ LPP_GUARDED_BY(mutex_) = 1;
  std::vector<ProxyRecord> records_ LPP_GUARDED_BY(mutex_);
  std::shared_ptr<HookSet> hooks_ LPP_GUARDED_BY(mutex_);

  Acceptor acceptor_;  // last: its threads use the others
};

}  // namespace lpp::testing
