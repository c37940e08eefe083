// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "devcluster/apiserver/status.h"

/// The parts of validation.h that live in files of their own. Pure functions that append to
/// `errors`.
namespace lpp::devcluster {

void add_required(FieldErrors& errors, std::string field, std::string detail = {});
void add_invalid(FieldErrors& errors, std::string field, std::string value, std::string detail);
void add_forbidden(FieldErrors& errors, std::string field, std::string detail);
void add_unsupported(FieldErrors& errors, std::string field, std::string value,
                     std::initializer_list<std::string_view> supported);

void validate_pod_spec(const nlohmann::json& spec, const std::string& field, FieldErrors& errors);
void validate_pod_update(const nlohmann::json& current, const nlohmann::json& next,
                         FieldErrors& errors);

void validate_volume(const nlohmann::json& volume, FieldErrors& errors);
void validate_volume_update(const nlohmann::json& current, const nlohmann::json& next,
                            FieldErrors& errors);
void validate_claim(const nlohmann::json& claim, FieldErrors& errors);
void validate_claim_update(const nlohmann::json& current, const nlohmann::json& next,
                           FieldErrors& errors);
void validate_class(const nlohmann::json& storage_class, FieldErrors& errors);
void validate_class_update(const nlohmann::json& current, const nlohmann::json& next,
                           FieldErrors& errors);
void validate_driver(const nlohmann::json& driver, FieldErrors& errors);
void validate_driver_update(const nlohmann::json& current, const nlohmann::json& next,
                            FieldErrors& errors);
void validate_capacity(const nlohmann::json& capacity, FieldErrors& errors);
void validate_capacity_update(const nlohmann::json& current, const nlohmann::json& next,
                              FieldErrors& errors);
/// "1Gi" and the like, to tell a quantity from nonsense.
bool looks_like_quantity(const nlohmann::json& value);
/// hostPath.path, local.path and the like: no ".." element.
void validate_path(std::string_view path, const std::string& field, FieldErrors& errors);
void validate_host_path_type(std::string_view type, const std::string& field, FieldErrors& errors);

}  // namespace lpp::devcluster
