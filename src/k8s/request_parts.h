// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/strings.h"
#include "k8s/api_client.h"

// What the requests of an ApiClient are put together from. Pure.

namespace lpp::k8s {

/// Collects "?a=b&c=d"; empty values are left out.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += percent_encode(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

/// The media types of an answer, the preferred first. `metadata_as` names the kind that stands for
/// an object or a list when only metadata is wanted, or is empty.
inline std::string accepted(bool protobuf, std::string_view metadata_as) {
  std::string types;
  const auto add = [&](std::string_view type) {
    if (!types.empty()) types += ',';
    types += type;
    if (metadata_as.empty()) return;
    types.append(";as=").append(metadata_as).append(";g=meta.k8s.io;v=v1");
  };
  if (protobuf) add(kProtobuf);
  add(kJson);
  if (!metadata_as.empty()) types.append(",").append(kJson);
  return types;
}

inline constexpr std::string_view kMetadataObject = "PartialObjectMetadata";
inline constexpr std::string_view kMetadataList = "PartialObjectMetadataList";

inline std::string_view content_type_of(PatchType type) {
  switch (type) {
    case PatchType::kMerge: return "application/merge-patch+json";
    case PatchType::kStrategicMerge: return "application/strategic-merge-patch+json";
    case PatchType::kJson: return "application/json-patch+json";
  }
  return "application/merge-patch+json";
}

}  // namespace lpp::k8s
