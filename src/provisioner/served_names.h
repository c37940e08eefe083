// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace lpp::provisioner {

/// The provisioner names that one daemon serves: its own, by which its lease, its helper pods and
/// its Events are known; and besides it, if asked for, one without a slash, of whose classes the
/// scheduler is told the free space (capacity.h). A plain value.
class ServedNames {
 public:
  ServedNames() = default;
  /// One name alone.
  template <std::convertible_to<std::string_view> Text>
  // Implicit: a name is a set of one.
  ServedNames(const Text& own) : own_(std::string_view(own)) {}
  /// `with_capacity` may be empty: then it is the own one alone.
  ServedNames(std::string own, std::string with_capacity)
      : own_(std::move(own)), with_capacity_(std::move(with_capacity)) {}

  const std::string& own() const { return own_; }
  /// "" = there is none.
  const std::string& with_capacity() const { return with_capacity_; }
  bool has(std::string_view name) const {
    return !name.empty() && (name == own_ || name == with_capacity_);
  }

 private:
  std::string own_{};
  std::string with_capacity_{};
};

/// For people: "rancher.io/local-path", or both with "or" between.
inline std::string to_string(const ServedNames& names) {
  return names.with_capacity().empty() ? names.own() : names.own() + " or " + names.with_capacity();
}

}  // namespace lpp::provisioner
