// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/cluster.h"
#include "cli/context.h"

namespace lpp::cli {

/// `volumes --orphans`: asks the daemon for directories that are nobody's, and prints them in that
/// format ("" = a table). The exit code.
int show_orphans(Cluster& cluster, const Installation& installation, const std::string& format,
                 Context& context);

}  // namespace lpp::cli
