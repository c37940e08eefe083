// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "node/volumes.h"

namespace lpp::agent {

/// The texts of configuration and classes as src/node takes them, for helper pods and agents alike.
/// Pure; nothing when a text is not right.

/// Digits of that base only.
std::optional<std::uint32_t> read_number(std::string_view text, int base, std::uint32_t most);

/// "10Gi", or a share of the file system such as "10%", below all of it.
std::optional<node::Room::Reserve> read_reserve(std::string_view text);

/// What disks and their records count may be anything; in messages the type's most stands for more.
std::int64_t told_number(std::uint64_t count);

}  // namespace lpp::agent
