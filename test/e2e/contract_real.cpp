// SPDX-License-Identifier: Apache-2.0
#include "contract_case.h"
#include "real_bed.h"

namespace lpp::testing {

Kube& contract_cluster() {
  static const std::unique_ptr<Kube> kube =
      LPP_MUST(Kube::from_kubeconfig(required_setting("LPP_E2E_KUBECONFIG")));
  return *kube;
}

}  // namespace lpp::testing
