// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::app {

/// One condition of being alive or ready. `check` is called on the server's threads, possibly on
/// several at once, and must answer from memory: it may not wait.
struct HealthCheck {
  std::string name{};
  std::function<Result<void>()> check{};
};

/// A page for people or programs. `render` is called as a check is.
struct HealthPage {
  std::string path{};
  std::string content_type{};
  std::function<std::string()> render{};
};

struct HealthEndpoints {
  std::vector<HealthCheck> live{};   // asked in order
  std::vector<HealthCheck> ready{};  // asked in order
  std::vector<HealthPage> pages{};
};

struct ProbeAnswer {
  int status = 200;
  std::string body{};
  std::string content_type = "text/plain; charset=utf-8";
  std::string allow{};  // the methods, with status 405
};

/// The answer to a request for `target` (path and query).
///   /health  GET, HEAD, OPTIONS: 200 "OK", or 503 "health check <name> failed: <error>"
///   /ready   any method: 200 "Ready", or 503 "readiness check <name> failed: <error>"
///            (rule B1.5)
///   /livez, /readyz, /healthz (both)  GET, HEAD: as in Kubernetes' components: 200 "ok", or 500
///            with one line per check; ?verbose shows the lines in any case, ?exclude=NAME leaves
///            checks out
///   the pages  GET, HEAD
/// Other methods are answered 405, other paths 404.
ProbeAnswer answer_probe(const HealthEndpoints& endpoints, std::string_view method,
                         std::string_view target);

}  // namespace lpp::app
