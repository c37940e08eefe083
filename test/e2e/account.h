// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/test_bed.h"
#include "k8s/resource.h"

namespace lpp::testing {

/// A token of an existing ServiceAccount, valid for an hour. Ends the test case when it fails.
std::string account_token(TestBed& bed, const k8s::ObjectKey& account);

/// FOLDER/token as as-pod.sh wants it: what the kubelet mounts into a pod of that account.
void write_pod_token(TestBed& bed, const k8s::ObjectKey& account, const std::string& folder);

/// A kubeconfig whose user is that account.
void write_kubeconfig(TestBed& bed, const k8s::ObjectKey& account, const std::string& file);

}  // namespace lpp::testing
