// SPDX-License-Identifier: Apache-2.0
#include "k8s/exec_credential.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/parse_time.h"
#include "base/strings.h"
#include "k8s/base64.h"
#include "k8s/child_process.h"
#include "k8s/dial.h"
#include "k8s/json_writer.h"
#include "k8s/token_source.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds kRunLimit{60};
constexpr std::chrono::seconds kRunAgainAfterFailure{1};
constexpr std::chrono::seconds kRunAgainAfterRefusal{5};

/// A string member; "" when it is absent or null, nothing when it is of another type.
std::optional<std::string> text_of(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::string();
  if (!it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

Error bad_output(const std::string& what) { return invalid("its output " + what); }

}  // namespace

Result<ExecCredential> parse_exec_credential(const std::string& output,
                                             const std::string& api_version) {
  const json object = json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return bad_output("is not a JSON object");
  if (text_of(object, "kind") != "ExecCredential") return bad_output("is not an ExecCredential");
  if (text_of(object, "apiVersion") != api_version) {
    return bad_output("has another apiVersion than " + api_version);
  }
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) return bad_output("has no status");
  std::array<std::string, 4> values;
  constexpr std::array<const char*, 4> kKeys{"token", "clientCertificateData", "clientKeyData",
                                             "expirationTimestamp"};
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    auto value = text_of(*status, kKeys[i]);
    if (!value) return bad_output(fmt::format("has a status.{} that is not a string", kKeys[i]));
    values[i] = *std::move(value);
  }
  ExecCredential credential{.token = std::string(trim(values[0])),
                            .client = {.certificate = values[1], .key = values[2]}};
  if (credential.client.certificate.empty() != credential.client.key.empty()) {
    return bad_output("has only one of status.clientCertificateData and status.clientKeyData");
  }
  if (credential.token.empty() && credential.client.empty()) {
    return bad_output("has neither a token nor a client certificate in its status");
  }
  if (!is_header_value(credential.token)) return bad_output("has control characters in the token");
  if (!values[3].empty()) {
    credential.expires = parse_rfc3339(values[3]);
    if (!credential.expires) {
      return bad_output("has a status.expirationTimestamp that is not RFC 3339: " +
                        log::quoted(truncate_utf8(values[3], 60)));
    }
  }
  return credential;
}

Result<std::string> exec_info(const RestConfig& config) {
  json spec = {{"interactive", false}};
  if (config.exec->provide_cluster_info) {
    json cluster = {{"server", (config.https ? "https://" : "http://") +
                                   host_and_port(config.host, config.port) + config.base_path}};
    if (!config.tls_server_name.empty()) cluster["tls-server-name"] = config.tls_server_name;
    if (config.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
    std::string ca = config.ca.data;
    if (ca.empty() && !config.ca.file.empty()) {
      LPP_ASSIGN_OR_RETURN(ca, read_small_file(config.ca.file), "certificate authority");
    }
    if (!ca.empty()) cluster["certificate-authority-data"] = base64_encode(ca);
    if (!config.proxy_url.empty()) cluster["proxy-url"] = config.proxy_url;
    spec["cluster"] = std::move(cluster);
  }
  const json info = {{"apiVersion", config.exec->api_version},
                     {"kind", "ExecCredential"},
                     {"spec", std::move(spec)}};
  return write_json(info);
}

ExecCredentials::ExecCredentials(RestConfig config, Clock& clock)
    : config_(std::move(config)), clock_(clock) {}

bool ExecCredentials::usable(const ExecCredential& credential) const {
  return !credential.expires || clock_.wall_now() < *credential.expires;
}

ExecCredentials::~ExecCredentials() {
  std::jthread last;
  {
    MutexLock lock(mutex_);
    last = std::move(runner_);
  }
}

Result<ExecCredential> ExecCredentials::get(TimePoint deadline, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (true) {
    if (stop.stop_requested()) return cancelled();
    if (last_ && last_->ok() && usable(**last_)) return *last_;
    const TimePoint now = clock_.now();
    if (last_ && !last_->ok() && now < last_run_ + kRunAgainAfterFailure) return *last_;
    if (now >= deadline) {
      return Error{.code = ErrorCode::kTimeout,
                   .message = config_.exec->command + " has not ended in time"};
    }
    if (!running_) start();
    clock_.wait_until(changed_, mutex_, std::min(deadline, now + std::chrono::milliseconds(20)));
  }
}

void ExecCredentials::start() {
  running_ = true;
  const auto ended = [this](Result<ExecCredential> result) LPP_REQUIRES(mutex_) {
    running_ = false;
    if (result.ok() || !result.error().is(ErrorCode::kCancelled)) {
      last_ = std::move(result);
      last_run_ = clock_.now();
    }
    changed_.notify_all();
  };
  try {
    // The thread of the run before has nothing left to do: this waits for no run.
    runner_ = std::jthread([this, ended](const std::stop_token& stop) {
      set_thread_name("exec-plugin");
      auto result = run(stop);
      MutexLock lock(mutex_);
      ended(std::move(result));
    });
  } catch (const std::system_error& error) {  // a limit of the container
    ended(Error{.code = ErrorCode::kUnavailable,
                .message = std::string("no thread for the plugin: ") + error.what()});
  }
}

void ExecCredentials::invalidate() {
  MutexLock lock(mutex_);
  // A server that refuses whatever the plugin gives must not make us run it for every call.
  if (last_ && last_->ok() && clock_.now() >= last_run_ + kRunAgainAfterRefusal) last_.reset();
}

Result<ExecCredential> ExecCredentials::run(const std::stop_token& stop) const {
  const ExecPlugin& plugin = *config_.exec;
  LPP_ASSIGN_OR_RETURN(std::string info, exec_info(config_), plugin.command);
  ChildProcess child{.command = plugin.command, .args = plugin.args, .env = plugin.env};
  child.env.emplace_back("KUBERNETES_EXEC_INFO", std::move(info));
  const auto refuse = [&](std::string message) {
    if (!plugin.install_hint.empty()) message += "\n" + plugin.install_hint;
    return Error{.code = ErrorCode::kUnauthorized, .message = std::move(message)};
  };
  const auto outcome = run_child(child, clock_, kRunLimit, stop);
  if (!outcome.ok()) {
    if (outcome.error().is(ErrorCode::kCancelled)) return outcome.error();
    return refuse(outcome.error().message);
  }
  if (outcome->exit_code != 0) {
    return refuse(fmt::format("{} ended with code {}: {}", plugin.command, outcome->exit_code,
                              log::quoted(trim(outcome->errors))));
  }
  auto credential = parse_exec_credential(outcome->output, plugin.api_version);
  if (!credential.ok()) return refuse(plugin.command + ": " + credential.error().message);
  if (!usable(*credential)) return refuse(plugin.command + ": the credential has expired already");
  return credential;
}

}  // namespace lpp::k8s
