// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "k8s/objects.h"

namespace lpp::config {

namespace pattern {
struct Tree;
}

/// A path, user, group or permission pattern of a StorageClass: Go's text/template over .PVName and
/// .PVC (the claim's ObjectMeta), behaviour rule B4. Gives what Go gives, or an error. On purpose
/// an error: printing a label or annotation that is missing (elsewhere it is empty), complex
/// numbers, methods of times, printing whole structs, define/template/block, fields of ObjectMeta
/// that are not kept (e.g. ManagedFields), and functions whose result would depend on Unicode
/// tables for characters beyond ASCII. Times print in UTC. Size and steps are bounded. Immutable;
/// thread-safe; cheap to copy.
class PathTemplate {
 public:
  /// `name` is the parameter's name ("pathPattern"). Errors are kInvalid and point into the
  /// pattern: "pathPattern:1:4: function "trim" not defined".
  static Result<PathTemplate> parse(std::string_view text, std::string_view name);

  /// The rendered text. Errors: "pathPattern:1:8: at <.PVC.Labels.x>: map has no entry for key x".
  Result<std::string> render(std::string_view pv_name, const k8s::ObjectMeta& claim) const;

 private:
  explicit PathTemplate(std::shared_ptr<const pattern::Tree> tree) : tree_(std::move(tree)) {}

  std::shared_ptr<const pattern::Tree> tree_;
};

}  // namespace lpp::config
