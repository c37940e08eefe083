// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devcluster/apiserver/registry_impl.h"

namespace lpp::devcluster {

/// Registry::watch: checks the options and makes the Watch.
WatchReply start_watch(Registry::Impl& registry, const WatchOptions& options);

}  // namespace lpp::devcluster
