// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "devcluster/apiserver/resources.h"

/// Label and field selectors of list and watch. Immutable after parsing.
namespace lpp::devcluster {

class LabelSelector {
 public:
  /// Grammar of k8s.io/apimachinery/pkg/labels: k=v, k==v, k!=v, k in (a,b), k notin (a,b), k, !k,
  /// k>n, k<n, joined by commas. The error's message is what the API server says after 400.
  static Result<LabelSelector> parse(std::string_view text);

  bool empty() const { return requirements_.empty(); }
  bool matches(const nlohmann::json& object) const;

 private:
  enum class Op { kIn, kNotIn, kExists, kNotExists, kGreater, kLess };
  struct Requirement {
    std::string key;
    Op op = Op::kExists;
    std::vector<std::string> values{};
  };
  friend class LabelSelectorParser;

  static bool matches(const Requirement& requirement, const nlohmann::json& labels);

  std::vector<Requirement> requirements_;
};

class FieldSelector {
 public:
  /// k=v, k==v, k!=v joined by commas; only the fields that the resource can be selected by.
  static Result<FieldSelector> parse(std::string_view text, const ResourceInfo& info);

  bool empty() const { return terms_.empty(); }
  bool matches(const nlohmann::json& object) const;

 private:
  struct Term {
    std::string field;
    std::string value;
    bool equal = true;
  };
  std::vector<Term> terms_;
};

}  // namespace lpp::devcluster
