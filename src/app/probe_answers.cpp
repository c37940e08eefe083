// SPDX-License-Identifier: Apache-2.0
#include "app/probe_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace lpp::app {

namespace {

struct Query {
  bool verbose = false;
  std::set<std::string_view> excluded{};
};

Query parse_query(std::string_view text) {
  Query out;
  for (const std::string_view part : split(text, '&')) {
    constexpr std::string_view kExclude = "exclude=";
    if (part == "verbose" || part.starts_with("verbose=")) out.verbose = true;
    if (part.starts_with(kExclude)) out.excluded.insert(part.substr(kExclude.size()));
  }
  return out;
}

ProbeAnswer refuse_method(std::string allow) {
  return {.status = 405, .body = "method not allowed", .allow = std::move(allow)};
}

ProbeAnswer first_failure(const std::vector<HealthCheck>& checks, std::string_view what,
                          std::string ok) {
  for (const HealthCheck& check : checks) {
    if (const auto result = check.check(); !result.ok()) {
      return {
          .status = 503,
          .body = fmt::format("{} check {} failed: {}", what, check.name, result.error().message)};
    }
  }
  return {.body = std::move(ok)};
}

/// The lines of Kubernetes' own components, except that the reason is not withheld.
ProbeAnswer run_checks(std::string_view what, const std::vector<const HealthCheck*>& checks,
                       const Query& query) {
  bool ok = true;
  std::string text = "[+]ping ok\n";
  for (const HealthCheck* check : checks) {
    if (query.excluded.contains(check->name)) {
      text += fmt::format("[+]{} excluded: ok\n", check->name);
      continue;
    }
    const auto result = check->check();
    ok = ok && result.ok();
    text += result.ok() ? fmt::format("[+]{} ok\n", check->name)
                        : fmt::format("[-]{} failed: {}\n", check->name, result.error().message);
  }
  text += fmt::format("{} check {}\n", what, ok ? "passed" : "failed");
  return {.status = ok ? 200 : 500, .body = ok && !query.verbose ? "ok" : std::move(text)};
}

}  // namespace

ProbeAnswer answer_probe(const HealthEndpoints& endpoints, std::string_view method,
                         std::string_view target) {
  const auto mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  if (path == "/ready") return first_failure(endpoints.ready, "readiness", "Ready");
  const bool reads = method == "GET" || method == "HEAD";
  if (path == "/health") {
    return reads || method == "OPTIONS" ? first_failure(endpoints.live, "health", "OK")
                                        : refuse_method("GET, HEAD, OPTIONS");
  }
  const auto page = std::find_if(endpoints.pages.begin(), endpoints.pages.end(),
                                 [&](const HealthPage& one) { return one.path == path; });
  const bool is_page = page != endpoints.pages.end();
  const bool live = path == "/livez" || path == "/healthz";
  const bool ready = path == "/readyz" || path == "/healthz";
  if (!is_page && !live && !ready) return {.status = 404, .body = "not found"};
  if (!reads) return refuse_method("GET, HEAD");
  if (is_page) return {.body = page->render(), .content_type = page->content_type};
  std::vector<const HealthCheck*> checks;
  if (live) {
    for (const HealthCheck& one : endpoints.live) checks.push_back(&one);
  }
  if (ready) {
    for (const HealthCheck& one : endpoints.ready) checks.push_back(&one);
  }
  return run_checks(path.substr(1), checks,
                    parse_query(mark == std::string_view::npos ? "" : target.substr(mark + 1)));
}

}  // namespace lpp::app
