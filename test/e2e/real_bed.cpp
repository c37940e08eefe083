// SPDX-License-Identifier: Apache-2.0
#include "real_bed.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fakes/setting.h"

namespace lpp::testing {

std::string required_setting(const char* name) {
  const auto value = setting(name);
  if (!value) FAIL(name, " is not set: run test/e2e/run.sh");
  return *value;
}

Result<std::unique_ptr<RealBed>> RealBed::create() {
  std::unique_ptr<RealBed> bed(new RealBed);
  bed->node_ = required_setting("LPP_E2E_NODE");
  bed->volumes_ = required_setting("LPP_E2E_VOLUMES");
  LPP_ASSIGN_OR_RETURN(bed->admin_, Kube::from_kubeconfig(required_setting("LPP_E2E_KUBECONFIG")),
                       "administrator");
  LPP_ASSIGN_OR_RETURN(bed->upstream_, bed->admin_->upstream(), "administrator");
  const std::string file = required_setting("LPP_E2E_DAEMON_KUBECONFIG");
  std::ifstream in(file);
  const auto config = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return invalid(file + ": not a kubeconfig in JSON");
  bed->daemon_token_ = config["users"][0]["user"].value("token", "");
  if (bed->daemon_token_.empty()) return invalid(file + ": no token");
  return bed;
}

}  // namespace lpp::testing
