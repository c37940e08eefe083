// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "k8s/resource.h"

namespace lpp::testing {

using k8s::kNamespaces;
inline constexpr k8s::Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount",
                                                true};
inline constexpr k8s::Resource kSecrets{"", "v1", "secrets", "Secret", true};
inline constexpr k8s::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews",
                                             "TokenReview", false};
inline constexpr k8s::Resource kServices{"", "v1", "services", "Service", true};
inline constexpr k8s::Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet", true};
inline constexpr k8s::Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
inline constexpr k8s::Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};

/// The resource an object belongs to by its apiVersion and kind; kInvalid for kinds that tests
/// never apply.
Result<const k8s::Resource*> resource_of(const nlohmann::json& object);

}  // namespace lpp::testing
