// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "k8s/objects.h"
#include "template/value.h"

namespace lpp::config {

/// An owner of a claim, as a pattern sees it.
class OwnerFields : public gotemplate::Object {
 public:
  explicit OwnerFields(const k8s::OwnerReference& owner) : owner_(owner) {}

  std::string_view type() const override { return "v1.OwnerReference"; }
  Result<gotemplate::Value> field(std::string_view name) const override;

 private:
  const k8s::OwnerReference& owner_;
};

/// .PVC: the metadata of a claim.
class MetaFields : public gotemplate::Object {
 public:
  explicit MetaFields(const k8s::ObjectMeta& claim);

  std::string_view type() const override { return "v1.ObjectMeta"; }
  Result<gotemplate::Value> field(std::string_view name) const override;

 private:
  const k8s::ObjectMeta& claim_;
  std::deque<OwnerFields> owner_fields_;
  std::vector<const gotemplate::Object*> owners_;
};

/// What "." is at the start of a pattern. The claim and the name have to outlive it.
class ClaimData : public gotemplate::Object {
 public:
  ClaimData(std::string_view pv_name, const k8s::ObjectMeta& claim)
      : pv_name_(pv_name), meta_(claim) {}

  std::string_view type() const override { return "config.PatternData"; }
  Result<gotemplate::Value> field(std::string_view name) const override;

 private:
  const std::string_view pv_name_;
  const MetaFields meta_;
};

}  // namespace lpp::config
