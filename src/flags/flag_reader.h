// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flags/flag.h"
#include "flags/parser.h"

namespace lpp::flags {

/// Reads the values of one command's flags: the flag, else its variable, else its default, checked.
/// The first error is kept; what is returned after one is of no use. Names must be in the tables.
/// Everything passed in must outlive it. For one thread.
class FlagReader {
 public:
  FlagReader(const Given& given, const GetEnv& getenv, std::span<const FlagGroup> groups)
      : given_(given), getenv_(getenv), groups_(groups) {}

  const std::optional<Error>& error() const { return error_; }

  /// True when the flag or its variable is there; an empty variable counts as absent.
  bool given(std::string_view name) const;

  std::string text(std::string_view name) const { return look_up(name).value; }

  /// Every value of a flag that may be given several times.
  std::vector<std::string> texts(std::string_view name) const;

  /// A text that must match; an empty variable overrides the default (and rarely matches).
  std::string checked_text(std::string_view name, bool (*accept)(std::string_view),
                           std::string_view expected);

  /// One of the flag's choices, or its default.
  std::string choice(std::string_view name);

  bool boolean(std::string_view name);
  int integer(std::string_view name, int low, int high);
  double real(std::string_view name);
  /// Whole seconds from 1 s to 24 h.
  std::chrono::seconds seconds(std::string_view name);
  /// The same, or 0.
  std::chrono::seconds seconds_or_zero(std::string_view name);
  /// More than zero.
  std::chrono::nanoseconds duration(std::string_view name);

  void fail(std::string message) {
    if (!error_) error_ = invalid(std::move(message));
  }

 private:
  enum class Origin { kFlag, kVariable, kDefault };
  struct Source {
    const Flag* flag = nullptr;
    Origin origin = Origin::kDefault;
    std::string value{};
  };

  Source look_up(std::string_view name) const;
  static bool is_empty_variable(const Source& source) {
    return source.origin == Origin::kVariable && source.value.empty();
  }
  /// For values that are not text: an empty variable is ignored.
  Source usable_source(std::string_view name) const;
  template <typename T>
  std::optional<T> number(std::string_view name, std::optional<T> (*parse)(std::string_view),
                          std::string_view expected);
  std::chrono::seconds whole_seconds(std::string_view name, std::chrono::seconds least,
                                     std::string_view expected);
  void fail(const Source& source, std::string_view expected);

  const Given& given_;
  const GetEnv& getenv_;
  const std::span<const FlagGroup> groups_;
  std::optional<Error> error_{};
};

}  // namespace lpp::flags
