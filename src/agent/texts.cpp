// SPDX-License-Identifier: Apache-2.0
#include "agent/texts.h"

#include <algorithm>
#include <limits>

#include "base/whole_number.h"
#include "k8s/quantity.h"

namespace lpp::agent {

std::optional<std::uint32_t> read_number(std::string_view text, int base, std::uint32_t most) {
  const auto value = whole_number<std::uint32_t>(text, base);
  return value && *value <= most ? value : std::nullopt;
}

std::optional<node::Room::Reserve> read_reserve(std::string_view text) {
  if (text.ends_with('%')) {
    const auto percent = read_number(text.substr(0, text.size() - 1), 10, 99);
    if (!percent) return std::nullopt;
    return node::Room::Reserve{.percent = *percent};
  }
  const auto bytes = k8s::Quantity::parse(text);
  if (!bytes.ok() || bytes->saturated() || bytes->value() < 0) return std::nullopt;
  return node::Room::Reserve{.bytes = static_cast<std::uint64_t>(bytes->value())};
}

std::int64_t told_number(std::uint64_t count) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(count, kMost));
}

}  // namespace lpp::agent
