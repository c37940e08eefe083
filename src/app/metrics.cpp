// SPDX-License-Identifier: Apache-2.0
#include "app/metrics.h"

namespace lpp::app {

std::string metrics_text(const Subjects& subjects) {
  std::string out = work_metrics(subjects);
  out += volume_metrics(subjects);
  out += usage_metrics(subjects);
  out += client_metrics(subjects);
  out += daemon_metrics(subjects);
  out += agent_metrics(subjects);
  out += process_metrics();
  return out;
}

}  // namespace lpp::app
