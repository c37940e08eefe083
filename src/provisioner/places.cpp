// SPDX-License-Identifier: Apache-2.0
#include "provisioner/places.h"

#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

std::optional<operation::Holder> Places::volume_in_the_way(
    const operation::Operation& operation) const {
  const auto volume =
      overlapping_volume(volumes_, nodes_, operation, names_, operation.volume_name);
  if (volume == nullptr) return std::nullopt;
  return operation::Holder{
      .volume_name = volume->meta.name, .path = volume->path, .is_volume = true};
}

bool Places::may_be_one_node(std::string_view a, std::string_view b) const {
  const auto is_there = [&](std::string_view name) {
    return nodes_.get({"", std::string(name)}) != nullptr;
  };
  return a == b || !is_there(a) || !is_there(b);
}

}  // namespace lpp::provisioner
