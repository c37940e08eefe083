#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "k8s/projection.h"

namespace lpp::k8s {

/// Reading answers in either format that an API server speaks, JSON or protobuf: their first bytes
/// tell which it is. Results are those of json_reader.h and protobuf_reader.h; protobuf is never
/// asked for, and not read, without a projection. Free functions without state; they never throw.

/// An object; "kind" may be missing.
nlohmann::json read_object(std::string_view body, Projection projection);

/// A frame of a watch as ApiClient::watch() gives it; `projection` is that of its "object".
nlohmann::json read_frame(std::string_view frame, Projection projection);

/// A list, see read_json_list(); `projection` is that of the items.
nlohmann::json read_list(std::string_view body,
                         const std::function<void(const nlohmann::json&)>& on_item,
                         Projection projection);

}  // namespace lpp::k8s
