// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/path_ledger.h"
#include "provisioner/served_names.h"

namespace lpp::provisioner {

/// What the path ledger has to know of volumes and nodes, from their stores. Thread-safe.
class Places final : public operation::Surroundings {
 public:
  Places(const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes,
         ServedNames names)
      : volumes_(volumes), nodes_(nodes), names_(std::move(names)) {}

  std::optional<operation::Holder> volume_in_the_way(
      const operation::Operation& operation) const override;
  bool may_be_one_node(std::string_view a, std::string_view b) const override;

 private:
  const k8s::Store<k8s::PersistentVolume>& volumes_;
  const k8s::Store<k8s::Node>& nodes_;
  const ServedNames names_;
};

}  // namespace lpp::provisioner
