// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "bench/arguments.h"
#include "k8s/api_client.h"

namespace lpp::bench {

struct FillOptions {
  std::string ns = "bench-fill";
  std::string storage_class = "local-path";
  std::string provisioner = "rancher.io/local-path";  // who made the volumes
  std::string node = "hollow-0";
  std::size_t claims = 1000;
  std::size_t first = 0;  // number of the first one
  std::size_t connections = 32;
};

std::set<std::string> fill_flags();
Result<FillOptions> fill_options(const Arguments& arguments);

/// Puts Bound claims and their volumes into the cluster without any provisioner or controller:
/// objects, then their status. For sizes that would take minutes otherwise.
Result<void> fill(k8s::ApiClient& client, const FillOptions& options);

}  // namespace lpp::bench
