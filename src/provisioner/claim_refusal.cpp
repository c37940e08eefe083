// SPDX-License-Identifier: Apache-2.0
#include "provisioner/claim_refusal.h"

#include <utility>

#include "k8s/quantity.h"

namespace lpp::provisioner {

Refusal refuse(std::string message) { return Refusal{.message = std::move(message)}; }

std::variant<std::int64_t, Refusal> size_of(const k8s::PersistentVolumeClaim& claim) {
  const auto size = k8s::Quantity::parse(claim.storage_request);
  if (!size.ok()) return refuse("spec.resources.requests.storage: " + size.error().message);
  if (size->value() <= 0 || size->saturated()) {
    return refuse("spec.resources.requests.storage \"" + claim.storage_request +
                  "\" is not a size that a volume can have");
  }
  return size->value();
}

std::optional<Refusal> check_request(const k8s::PersistentVolumeClaim& claim, bool shared) {
  if (!claim.volume_mode.empty() && claim.volume_mode != "Filesystem") {
    return refuse("volumeMode " + claim.volume_mode +
                  " is not supported: local-path volumes are directories, use Filesystem");
  }
  if (!claim.data_source.empty()) {
    return refuse("dataSource " + claim.data_source +
                  " is not supported: local-path volumes start empty");
  }
  if (!shared && claim.has_selector) {
    return refuse("claim.Spec.Selector is not supported: remove spec.selector from the claim");
  }
  if (claim.access_modes.empty()) return refuse("spec.accessModes is empty");
  if (shared) return std::nullopt;
  for (const std::string& mode : claim.access_modes) {
    if (mode != "ReadWriteOnce" && mode != "ReadWriteOncePod") {
      return refuse("access mode " + mode +
                    " is not supported: a node's own path only supports ReadWriteOnce and "
                    "ReadWriteOncePod");
    }
  }
  return std::nullopt;
}

}  // namespace lpp::provisioner
