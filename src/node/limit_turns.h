// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lpp::node {

/// For who asks again and again which directories are out of their limits: whom to look at this
/// time. Everybody the first time, then a tenth of them in turn, or `at_once` where that is more;
/// and each time those that were found out, so that what is told of them is never an earlier look's
/// word. Not thread-safe.
class LimitTurns {
 public:
  explicit LimitTurns(std::size_t at_once = 100) : at_once_(at_once) {}

  /// Which of these, by id in order, without one twice. Who is not among them is forgotten.
  std::vector<bool> take(const std::vector<std::string>& ids);
  /// Of one that was looked at. nullopt: nobody can tell, and it is looked at again if it was out.
  void saw(const std::string& id, std::optional<bool> out);

 private:
  std::size_t at_once_;
  bool began_ = false;
  std::string next_{};  // the turn goes on with this one, or the next behind it
  std::set<std::string> out_{};
};

}  // namespace lpp::node
