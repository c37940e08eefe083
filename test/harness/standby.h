// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/fault_proxy.h"

namespace lpp::testing {

/// What the proxy of a standby does with a request: until it may lead, the API server says of the
/// lease that somebody else was faster. However busy the machine is, the leader stays the leader.
inline Decision as_standby(const ApiRequest& request, bool may_lead) {
  const bool takes_lease = request.resource == "leases" && request.is_write();
  return takes_lease && !may_lead ? Decision::reply(409) : Decision::forward();
}

}  // namespace lpp::testing
