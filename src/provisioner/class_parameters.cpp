// SPDX-License-Identifier: Apache-2.0
#include "provisioner/class_parameters.h"

#include <fmt/format.h>

#include <chrono>

#include "base/log.h"
#include "base/whole_number.h"
#include "k8s/quantity.h"
#include "provisioner/names.h"

namespace lpp::provisioner {

using k8s::find;
using operation::Limits;

namespace {

/// More than this no file system takes for a limit.
constexpr std::int64_t kMostInodes = 4'294'967'295;

Refusal refuse_parameter(const k8s::StorageClass& storage_class, std::string_view parameter,
                         const std::string& value, std::string_view wanted) {
  return {.message =
              fmt::format("parameter {} of StorageClass \"{}\": {} cannot be used, it must be {}",
                          parameter, storage_class.meta.name, log::quoted(value), wanted)};
}

/// A whole number of seconds, minutes or hours, up to a week.
std::optional<Duration> wait_of(std::string_view text) {
  using std::chrono::hours;
  constexpr hours kMost{7 * 24};
  if (text.empty()) return std::nullopt;
  Duration unit{};
  switch (text.back()) {
    case 's': unit = std::chrono::seconds(1); break;
    case 'm': unit = std::chrono::minutes(1); break;
    case 'h': unit = hours(1); break;
    default: return std::nullopt;
  }
  const auto number = whole_number<int>(text.substr(0, text.size() - 1));
  if (!number || *number <= 0 || *number > kMost / unit) return std::nullopt;
  return *number * unit;
}

}  // namespace

std::optional<std::int64_t> reserved_bytes(const std::string& reserve, std::int64_t size) {
  if (reserve.starts_with('-')) return std::nullopt;  // not -0 either, which the node refuses
  if (reserve.ends_with('%')) {
    const auto share = whole_number<int>(std::string_view(reserve).substr(0, reserve.size() - 1));
    if (!share || *share < 0 || *share > 99) return std::nullopt;
    return size / 100 * *share + size % 100 * *share / 100;
  }
  const auto quantity = k8s::Quantity::parse(reserve);
  if (!quantity.ok() || quantity->saturated() || quantity->value() < 0) return std::nullopt;
  return quantity->value();
}

std::variant<Limits, Refusal> limits_of(const k8s::StorageClass& storage_class) {
  Limits limits;
  const auto& parameters = storage_class.parameters;
  if (const auto* quota = find(parameters, kQuotaParameter)) {
    if (*quota != kQuotaHard && *quota != "none") {
      return refuse_parameter(storage_class, kQuotaParameter, *quota, "\"hard\" or \"none\"");
    }
    limits.hard = *quota == kQuotaHard;
  }
  if (const auto* inodes = find(parameters, kQuotaInodesParameter)) {
    const auto number = whole_number<std::int64_t>(*inodes);
    if (!number || *number <= 0 || *number > kMostInodes) {
      return refuse_parameter(storage_class, kQuotaInodesParameter, *inodes,
                              "a number from 1 to 4294967295");
    }
    if (!limits.hard) {
      return Refusal{
          .message = fmt::format("parameter {} of StorageClass \"{}\" needs {}: hard beside it",
                                 kQuotaInodesParameter, storage_class.meta.name, kQuotaParameter)};
    }
    limits.inodes = *number;
  }
  if (const auto* reserve = find(parameters, kReserveParameter)) {
    if (!reserved_bytes(*reserve, 0)) {
      return refuse_parameter(storage_class, kReserveParameter, *reserve,
                              "a size such as \"10Gi\" or a share from \"0%\" to \"99%\"");
    }
    limits.reserve = *reserve;
  }
  if (const auto* overcommit = find(parameters, kOvercommitParameter)) {
    if (*overcommit != "true" && *overcommit != "false") {
      return refuse_parameter(storage_class, kOvercommitParameter, *overcommit,
                              "\"true\" or \"false\"");
    }
    limits.overcommit = *overcommit == "true";
  }
  return limits;
}

bool asks_for_limits(const k8s::StorageClass* storage_class, const Limits& limits) {
  if (storage_class == nullptr) return true;
  const auto wanted = limits_of(*storage_class);
  return std::holds_alternative<Limits>(wanted) && std::get<Limits>(wanted) == limits;
}

std::variant<OnNodeLost, Refusal> on_node_lost_of(const k8s::StorageClass& storage_class) {
  OnNodeLost wanted;
  const auto& parameters = storage_class.parameters;
  if (const auto* what = find(parameters, kOnNodeLostParameter)) {
    if (*what != "release" && *what != "keep") {
      return refuse_parameter(storage_class, kOnNodeLostParameter, *what,
                              "\"keep\" or \"release\"");
    }
    wanted.release = *what == "release";
  }
  if (const auto* after = find(parameters, kOnNodeLostAfterParameter)) {
    const auto wait = wait_of(*after);
    if (!wait) {
      return refuse_parameter(
          storage_class, kOnNodeLostAfterParameter, *after,
          "a whole number of seconds, minutes or hours, such as \"90s\", \"10m\" or "
          "\"2h\", up to \"168h\"");
    }
    if (!wanted.release) {
      return Refusal{.message = fmt::format(
                         "parameter {} of StorageClass \"{}\" needs {}: release beside it",
                         kOnNodeLostAfterParameter, storage_class.meta.name, kOnNodeLostParameter)};
    }
    wanted.after = *wait;
  }
  return wanted;
}

std::variant<PathSelection, Refusal> path_selection_of(const k8s::StorageClass& storage_class) {
  const auto* selection = find(storage_class.parameters, kPathSelectionParameter);
  if (selection == nullptr || *selection == "random") return PathSelection::kRandom;
  if (*selection == "mostFree") return PathSelection::kMostFree;
  return refuse_parameter(storage_class, kPathSelectionParameter, *selection,
                          "\"random\" or \"mostFree\"");
}

}  // namespace lpp::provisioner
