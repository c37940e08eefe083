// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/rest_config.h"
#include "k8s/transport.h"

namespace lpp::k8s {

/// Transport over cpp-httplib: a pool of keep-alive clients for calls, an own client per stream.
/// Authenticates every request as the RestConfig says (tokens and certificates rotate).
/// Thread-safe. Fails when the configuration cannot work (unreadable CA, bad certificate,
/// unsupported proxy). The clock must outlive it.
Result<std::unique_ptr<Transport>> make_httplib_transport(const RestConfig& config, Clock& clock);

}  // namespace lpp::k8s
