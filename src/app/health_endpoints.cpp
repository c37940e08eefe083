// SPDX-License-Identifier: Apache-2.0
#include "app/health_endpoints.h"

#include "app/health_checks.h"
#include "app/measured_volumes.h"
#include "app/metrics.h"
#include "app/orphans.h"
#include "app/status_page.h"

namespace lpp::app {

HealthEndpoints health_endpoints(const Subjects& subjects) {
  HealthEndpoints out{.live = live_checks(subjects), .ready = ready_checks(subjects)};
  if (subjects.options.metrics) {
    out.pages.push_back({.path = "/metrics", .content_type = kMetricsType, .render = [&subjects] {
                           return metrics_text(subjects);
                         }});
    out.pages.push_back({.path = "/usage",
                         .content_type = "application/json",
                         .render = [&subjects] { return usage_page(subjects); }});
    out.pages.push_back({.path = "/orphans",
                         .content_type = "application/json",
                         .render = [&subjects] { return orphans_page(subjects); }});
  }
  if (subjects.options.statusz) {
    out.pages.push_back({.path = "/statusz",
                         .content_type = "text/html; charset=utf-8",
                         .render = [&subjects] { return status_page(subjects); }});
  }
  return out;
}

}  // namespace lpp::app
