// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::hollow {

struct Options {
  std::string kubeconfig{};
  std::size_t nodes = 1;
  std::string prefix = "hollow-";            // node i is called prefix + i
  std::chrono::milliseconds start_delay{0};  // from the binding to Running
  std::chrono::milliseconds delay{1'000};    // from Running to the end
  bool write_running = true;                 // false: straight from Pending to the end
  std::size_t fail_every = 0;                // 0 = none
  std::size_t workers = 8;
  std::chrono::seconds lease_period{10};
  std::string message{};     // the termination message of a pod that succeeds
  bool remove_nodes = true;  // at the end
};

std::string_view usage();

/// kInvalid with the flag that is wrong. Pure.
Result<Options> parse_options(const std::vector<std::string>& arguments);

/// The nodes' names, in order.
std::vector<std::string> node_names(const Options& options);

}  // namespace lpp::hollow
