// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/resources.h"

/// Builders of the Status objects that a real API server answers failures with. Stateless.
namespace lpp::devcluster {

/// One field's problem in a 422 Invalid answer.
struct FieldError {
  enum class Kind { kRequired, kInvalid, kForbidden, kNotSupported, kTooLong, kDuplicate };

  Kind kind = Kind::kInvalid;
  std::string field{};
  std::string detail{};
  std::string value{};  ///< as text; shown for kInvalid, kNotSupported and kDuplicate

  std::string message() const;  ///< without the field
};

using FieldErrors = std::vector<FieldError>;

Reply make_status(int code, std::string_view reason, std::string_view message);
Reply not_found(const ResourceInfo& info, std::string_view name);
Reply already_exists(const ResourceInfo& info, std::string_view name);
Reply conflict(const ResourceInfo& info, std::string_view name, std::string_view why);
Reply modified_conflict(const ResourceInfo& info, std::string_view name);
Reply bad_request(std::string_view message);
Reply forbidden(const ResourceInfo& info, std::string_view name, std::string_view why);
Reply namespace_terminating(const ResourceInfo& info, std::string_view name, std::string_view ns);
Reply invalid_object(const ResourceInfo& info, std::string_view name, const FieldErrors& errors);
/// 422 without an object kind of the table, e.g. for ListOptions.
Reply invalid_kind(std::string_view group, std::string_view kind, std::string_view name,
                   const FieldErrors& errors);
Reply unknown_resource();
Reply method_not_allowed();
Reply expired(std::string_view message, std::string_view continue_token = {});
Reply watch_expired(std::uint64_t wanted, std::uint64_t oldest);
Reply version_too_large(std::uint64_t wanted, std::uint64_t current);
/// Any code and reason, as a fault asks for.
Reply fault_status(int code, std::string_view reason, std::string_view message,
                   std::optional<std::chrono::seconds> retry_after);
/// The Success status that ends a DELETE.
Reply deleted_status(const ResourceInfo& info, std::string_view name, std::string_view uid);

}  // namespace lpp::devcluster
