// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace lpp::bench {

/// "--name value" pairs of a subcommand. Plain value.
class Arguments {
 public:
  /// kInvalid for a flag that is not in `known`, and for one without a value.
  static Result<Arguments> parse(const std::vector<std::string>& words,
                                 const std::set<std::string>& known);

  bool has(const std::string& name) const { return values_.contains(name); }
  /// The last value given.
  std::string text(const std::string& name, const std::string& fallback = {}) const;
  /// All values given, in order.
  std::vector<std::string> all(const std::string& name) const;
  /// kInvalid when it is not a whole number of at most a million.
  Result<std::size_t> number(const std::string& name, std::size_t fallback) const;
  Result<std::string> required(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace lpp::bench
