// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "template/value.h"

namespace lpp::gotemplate {

struct Tree;

/// A template of Go's text/template over the fields of an Object. Gives what Go gives, or an error.
/// On purpose an error: printing an entry of a map that is missing (elsewhere it is empty), numbers
/// but whole ones, formats that make no name (format.h), methods of times, printing whole
/// structures, define/template/block, and functions whose result would depend on Unicode tables for
/// characters beyond ASCII. Size and steps are bounded. Immutable; thread-safe; cheap to copy.
class Template {
 public:
  /// Errors are kInvalid and point into the text: "name:1:4: function "trim" not defined".
  static Result<Template> parse(std::string_view text, std::string_view name);

  /// Errors: "name:1:8: at <.X.y>: map has no entry for key "y"".
  Result<std::string> render(const Object& data) const;

 private:
  explicit Template(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}

  std::shared_ptr<const Tree> tree_;
};

}  // namespace lpp::gotemplate
