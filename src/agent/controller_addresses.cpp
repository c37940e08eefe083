// SPDX-License-Identifier: Apache-2.0
#include "agent/controller_addresses.h"

#include <netdb.h>

#include <array>
#include <memory>

#include "base/log.h"
#include "k8s/call_guard.h"
#include "k8s/dial.h"
#include "k8s/httplib_transport.h"
#include "k8s/server_url.h"

namespace lpp::agent {

namespace {

constexpr std::chrono::seconds kLookUpLimit{10};

/// "" when it is of no family that has a text.
std::string text_of(const k8s::Address& address) {
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.size, text.data(),
                    text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? std::string(text.data()) : std::string();
}

}  // namespace

Result<std::unique_ptr<ControllerAddresses>> ControllerAddresses::create(const Options& options,
                                                                         Clock& clock) {
  std::vector<k8s::RestConfig> servers;
  for (const std::string& text : options.urls) {
    LPP_ASSIGN_OR_RETURN(const auto url, k8s::parse_url(text), "the controller's URL");
    if (url.scheme != "https" || url.host.empty() || !url.user_info.empty()) {
      return invalid("the controller's URL must be like https://HOST:PORT");
    }
    constexpr int kPort = 8443;
    k8s::RestConfig& server = servers.emplace_back();
    server.host = url.host;
    server.port = url.port.value_or(kPort);
    server.base_path = url.path;
    server.ca.file = options.ca_file;
    server.tls_server_name = url.host;
    server.token_file = options.token_file;
    server.user_agent = options.user_agent;
  }
  if (servers.empty()) return invalid("say where the controller is");
  return std::unique_ptr<ControllerAddresses>(
      new ControllerAddresses(std::move(servers), clock, options.look_up));
}

Result<std::vector<Way>> ControllerAddresses::find(const std::stop_token& stop) {
  std::vector<Way> ways;
  std::string trouble;
  for (const k8s::RestConfig& server : servers_) {
    k8s::CallGuard guard(clock_);
    k8s::CallGuard::Call call(guard, clock_.now() + kLookUpLimit, stop);
    const auto addresses = resolver_.resolve(server.host, call);
    if (!addresses.ok()) {
      trouble = addresses.error().message;
      continue;
    }
    for (const k8s::Address& address : *addresses) {
      k8s::RestConfig config = server;
      config.host = text_of(address);
      if (config.host.empty()) continue;
      std::string name = k8s::host_and_port(config.host, config.port);
      if (config.host != server.host) name = fmt::format("{} ({})", server.host, name);
      ways.push_back({.name = std::move(name), .connect = [this, config] {
                        return k8s::make_httplib_transport(config, clock_);
                      }});
    }
  }
  if (ways.empty()) return Error{ErrorCode::kUnavailable, trouble};
  return ways;
}

}  // namespace lpp::agent
