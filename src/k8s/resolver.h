// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/call_guard.h"

namespace lpp::k8s {

/// A network address; the port is not set.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// kUnavailable with the reason kConnectFailed.
Error not_connected(std::string message);

/// Asks the system (getaddrinfo), which may take minutes and cannot be interrupted.
Result<std::vector<Address>> look_up(const std::string& host);

/// Addresses of host names, within the time of a call. A name is looked up on a thread of its own
/// ("dns"), one at a time per name, which serves all calls that wait; a lookup that hangs outlives
/// its calls and, harmlessly, the resolver. The last good answer serves when a new one is late or
/// fails. Addresses need no lookup. Thread-safe. The clock must outlive it.
class Resolver {
 public:
  using LookUp = std::function<Result<std::vector<Address>>(const std::string& host)>;

  /// `look_up` is called on another thread, also after the resolver is gone.
  explicit Resolver(Clock& clock, LookUp look_up = k8s::look_up);

  /// In the order in which to try them, at least one. kUnavailable with the reason kConnectFailed
  /// when there is no answer, or none before the call ended.
  Result<std::vector<Address>> resolve(const std::string& host, const CallGuard::Call& call);

 private:
  struct State;

  Clock& clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace lpp::k8s
