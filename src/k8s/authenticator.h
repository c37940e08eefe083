// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/exec_credential.h"
#include "k8s/rest_config.h"
#include "k8s/tls_context.h"
#include "k8s/token_source.h"

namespace lpp::k8s {

/// What authenticates one request.
struct Credentials {
  std::vector<std::pair<std::string, std::string>> headers{};
  ClientCertificate client{};  // of an exec plugin; empty otherwise
};

/// Turns a RestConfig's user into headers: bearer token (fixed, file or exec plugin), basic
/// authentication, impersonation. Secrets go to https servers only (rule C1.5).
/// Thread-safe. The clock must outlive it.
class Authenticator {
 public:
  /// kInvalid when something cannot be sent as a header.
  static Result<std::unique_ptr<Authenticator>> create(const RestConfig& config, Clock& clock);

  /// May wait for the exec plugin (seconds), until the deadline or the stop.
  Result<Credentials> credentials(TimePoint deadline, const std::stop_token& stop);

  /// The server answered 401: tokens are read, or the plugin is run, again for the next call.
  void refused();

 private:
  Authenticator(const RestConfig& config, Clock& clock);

  const bool secrets_allowed_;
  std::string basic_;  // value of Authorization, "" = none
  std::vector<std::pair<std::string, std::string>> impersonation_;
  TokenSource token_;
  std::unique_ptr<ExecCredentials> exec_;  // null = none
};

}  // namespace lpp::k8s
