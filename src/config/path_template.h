// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "k8s/objects.h"
#include "template/template.h"

namespace lpp::config {

/// A path, user, group or permission pattern of a StorageClass: Go's text/template over .PVName and
/// .PVC (the claim's ObjectMeta), rule B4. Fields of ObjectMeta that are not kept (e.g.
/// ManagedFields) are an error; times print in UTC. Immutable; thread-safe; cheap to copy.
class PathTemplate {
 public:
  /// `name` is the parameter's name ("pathPattern"). Errors are kInvalid and point into the
  /// pattern: "pathPattern:1:4: function "trim" not defined".
  static Result<PathTemplate> parse(std::string_view text, std::string_view name);

  /// The rendered text. Errors: "pathPattern:1:8: at <.PVC.Labels.x>: map has no entry for
  /// key "x"".
  Result<std::string> render(std::string_view pv_name, const k8s::ObjectMeta& claim) const;

 private:
  explicit PathTemplate(gotemplate::Template parsed) : template_(std::move(parsed)) {}

  gotemplate::Template template_;
};

}  // namespace lpp::config
