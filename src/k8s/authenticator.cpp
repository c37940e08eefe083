// SPDX-License-Identifier: Apache-2.0
#include "k8s/authenticator.h"

#include "base/log.h"
#include "base/strings.h"
#include "k8s/base64.h"

namespace lpp::k8s {

namespace {

std::vector<std::pair<std::string, std::string>> impersonation_headers(const Impersonation& as) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!as.user.empty()) headers.emplace_back("Impersonate-User", as.user);
  if (!as.uid.empty()) headers.emplace_back("Impersonate-Uid", as.uid);
  for (const auto& group : as.groups) headers.emplace_back("Impersonate-Group", group);
  for (const auto& [key, value] : as.extra) {
    headers.emplace_back("Impersonate-Extra-" + percent_encode(key), value);
  }
  return headers;
}

}  // namespace

Authenticator::Authenticator(const RestConfig& config, Clock& clock)
    : secrets_allowed_(config.https),
      impersonation_(impersonation_headers(config.impersonate)),
      token_(config.token, config.token_file, clock) {
  if (!config.username.empty()) {
    basic_ = "Basic " + base64_encode(config.username + ":" + config.password);
  }
  // As in client-go, a plugin is not asked when the user has other credentials (rule C1.7).
  const bool other = !config.token.empty() || !config.token_file.empty() ||
                     !config.username.empty() || !config.client_certificate.empty();
  if (config.exec && !other) exec_ = std::make_unique<ExecCredentials>(config, clock);
}

Result<std::unique_ptr<Authenticator>> Authenticator::create(const RestConfig& config,
                                                             Clock& clock) {
  std::unique_ptr<Authenticator> made(new Authenticator(config, clock));
  if (!is_header_value(config.token)) {
    return invalid("token: there are control characters in it");
  }
  for (const auto& [name, value] : made->impersonation_) {
    if (!is_header_value(value)) {
      return invalid("impersonation (" + name +
                     "): only visible ASCII can be sent: " + log::quoted(value));
    }
  }
  const bool secrets = !config.token.empty() || !config.token_file.empty() ||
                       !config.username.empty() || config.exec.has_value();
  if (!config.https && secrets) {
    log::warn("credentials are not sent: the server's URL is not https ({})", config.source);
  }
  return made;
}

Result<Credentials> Authenticator::credentials(TimePoint deadline, const std::stop_token& stop) {
  Credentials credentials{.headers = impersonation_};
  if (!secrets_allowed_) return credentials;
  if (!basic_.empty()) {
    credentials.headers.emplace_back("Authorization", basic_);
    return credentials;
  }
  std::string token;
  if (exec_ != nullptr) {
    LPP_ASSIGN_OR_RETURN(ExecCredential from_plugin, exec_->get(deadline, stop), "exec plugin");
    token = std::move(from_plugin.token);
    credentials.client = std::move(from_plugin.client);
  } else {
    LPP_ASSIGN_OR_RETURN(token, token_.token(), "credentials");
  }
  if (!token.empty()) credentials.headers.emplace_back("Authorization", "Bearer " + token);
  return credentials;
}

void Authenticator::refused() {
  token_.invalidate();
  if (exec_ != nullptr) exec_->invalidate();
}

}  // namespace lpp::k8s
