// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "devcluster/apiserver/faults.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/resources.h"
#include "devcluster/json_names.h"
#include "harness/exchange.h"

/// From HTTP to the API's words. Pure functions.
namespace lpp::devcluster {

using testing::Exchange;
using testing::HttpRequest;

/// Which resource a path is about; `info` is null for anything else.
struct ApiPath {
  const ResourceInfo* info = nullptr;
  std::string ns{};
  std::string name{};
  std::string subresource{};
  std::string proxied{};  ///< of nodes/proxy and pods/proxy: the path there
  bool is_api = false;    ///< below /api or /apis, so a 404 is a Status
};
ApiPath parse_api_path(const std::string& path);

/// get list watch create update patch delete deletecollection; "" for a method that fits nothing.
std::string verb_of(const HttpRequest& request, const ApiPath& path);

/// In which shape and format the client wants objects.
enum class Shape { kObject, kMetadata, kTable, kUnsupported };
struct Wanted {
  Shape shape = Shape::kObject;
  bool protobuf = false;         ///< objects of this kind, as far as they can be written so
  bool status_protobuf = false;  ///< a Status: only types without "as" count for it
};
/// Protobuf is taken for an unknown type unless `protobuf` is set.
Wanted wanted_of(const std::string& accept, std::string_view kind, bool protobuf);

ListOptions list_options(const HttpRequest& request, const ApiPath& path);
bool is_true(const std::string& value);

/// The body, from JSON or protobuf by its content type; null when it cannot be read.
Json request_body(const HttpRequest& request);

/// Body and query parameters of a DELETE together; empty when the body is no DeleteOptions.
std::optional<DeleteOptions> delete_options(const HttpRequest& request);

/// Empty for a content type that is no patch.
std::optional<PatchType> patch_type(const std::string& content_type);

/// "application/json; charset=utf-8" -> "application/json"
std::string media_type(const std::string& content_type);

}  // namespace lpp::devcluster
