// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lpp::operation {

/// What there is to be said of work that a node tells of and nobody here has ordered. After a
/// restart, or under a new leader, that is how such work is heard of; and whoever has taken a node
/// over may tell anything.
struct Belief {
  std::string against{};  // why it is not believed; "" = it may be so
  /// Its volume is on the node that tells of it, or its claim is to have one there: none on another
  /// node counts more.
  bool at_home = false;
};

}  // namespace lpp::operation
