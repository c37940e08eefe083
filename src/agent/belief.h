// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lpp::agent {

/// Of what an agent tells and nobody here has ordered: a former leader may have, or nobody.
struct Belief {
  std::string against{};  // "" = it may be so
  bool at_home = false;   // the volume or claim is to be on that node: none on another counts more
};

}  // namespace lpp::agent
