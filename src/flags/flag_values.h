// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lpp::flags {

/// Values of flags and variables as Go's flag package writes them; nullopt when the whole text is
/// not one. Pure.

/// Signed: decimal, 0x…, 0o… or 0…, 0b…; underscores between digits. Out of range is nullopt.
std::optional<std::int64_t> parse_go_int(std::string_view text);

/// 1, t, T, TRUE, true, True and 0, f, F, FALSE, false, False.
std::optional<bool> parse_go_bool(std::string_view text);

/// Decimal floating point; finite.
std::optional<double> parse_go_float(std::string_view text);

/// "15s", "1m30s", "1.5h", "-2ms", "0"; units ns us µs ms s m h. Out of range is nullopt.
std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text);

/// What a StorageClass accepts as provisioner: "name" or "prefix/name".
bool is_provisioner_name(std::string_view text);
/// A provisioner's name that a CSIDriver object can have, too.
bool is_driver_name(std::string_view text);

}  // namespace lpp::flags
