#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "k8s/projection.h"

namespace lpp::k8s {

/// Reading Kubernetes' protobuf, which costs both sides a fraction of what JSON does. What a
/// projection asks for comes as the JSON value that the server would have sent for it, so that one
/// decoder serves both; an empty text may stand where JSON has nothing. Free functions without
/// state; they never throw. What is not such a message gives a discarded value.

/// An answer's body is protobuf, and not JSON.
bool is_protobuf(std::string_view body);

/// An object, with its "kind".
nlohmann::json read_protobuf(std::string_view body, Projection projection);

/// A frame of a watch, as {"type", "object"}; `projection` is that of the object.
nlohmann::json read_protobuf_frame(std::string_view frame, Projection projection);

/// A list: its items go to `on_item` one by one; gives {"metadata", "items": []}. Some items may
/// have been delivered when the result is discarded. `projection` is that of the items.
nlohmann::json read_protobuf_list(std::string_view body,
                                  const std::function<void(const nlohmann::json&)>& on_item,
                                  Projection projection);

}  // namespace lpp::k8s
