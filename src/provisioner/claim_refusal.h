// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "k8s/objects.h"

namespace lpp::provisioner {

/// Why a claim cannot be provisioned as things stand: nothing but a change of the claim, its class,
/// its node or the configuration can help.
struct Refusal {
  std::string message{};
  /// The selected node is the reason: another node may serve.
  bool node_is_the_reason = false;
};
/// One that no other node changes.
Refusal refuse(std::string message);

/// In bytes, what the claim asks for.
std::variant<std::int64_t, Refusal> size_of(const k8s::PersistentVolumeClaim& claim);

/// What of the claim itself no volume of ours can have: its mode, a data source, a selector, access
/// modes. `shared`: on a file system that all nodes share, which can have some of them.
std::optional<Refusal> check_request(const k8s::PersistentVolumeClaim& claim, bool shared);

}  // namespace lpp::provisioner
