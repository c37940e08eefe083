// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/rest_config.h"
#include "k8s/tls_context.h"

namespace lpp::k8s {

/// What an exec plugin gave.
struct ExecCredential {
  std::string token{};
  ClientCertificate client{};
  std::optional<std::chrono::system_clock::time_point> expires{};
};

/// Decodes a plugin's output; kInvalid says what is wrong with it.
Result<ExecCredential> parse_exec_credential(const std::string& output,
                                             const std::string& api_version);

/// The ExecCredential that a plugin is given in KUBERNETES_EXEC_INFO (never interactive).
Result<std::string> exec_info(const RestConfig& config);

/// Credentials of an exec plugin (rule C1.7, after client-go's
/// plugin/pkg/client/auth/exec): run when there are none yet, when they expire, and after a 401;
/// one run at a time, on a thread of its own ("exec-plugin"), whose result serves all that wait and
/// those after them. A failed run is not repeated for a second.
/// Thread-safe. The clock must outlive it.
class ExecCredentials {
 public:
  /// config.exec must be set.
  ExecCredentials(RestConfig config, Clock& clock);

  /// Ends a run that is going on.
  ~ExecCredentials();
  ExecCredentials(const ExecCredentials&) = delete;
  ExecCredentials& operator=(const ExecCredentials&) = delete;

  /// kUnauthorized when the plugin fails (with the end of its stderr), kCancelled when stopped,
  /// kTimeout at the deadline. The run goes on after either, for others.
  Result<ExecCredential> get(TimePoint deadline, const std::stop_token& stop);
  void invalidate();

 private:
  bool usable(const ExecCredential& credential) const;
  Result<ExecCredential> run(const std::stop_token& stop) const;
  void start() LPP_REQUIRES(mutex_);

  const RestConfig config_;
  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  bool running_ LPP_GUARDED_BY(mutex_) = false;
  std::optional<Result<ExecCredential>> last_ LPP_GUARDED_BY(mutex_);
  TimePoint last_run_ LPP_GUARDED_BY(mutex_) = TimePoint::min();
  std::jthread runner_ LPP_GUARDED_BY(mutex_);  // of the last run
};

}  // namespace lpp::k8s
