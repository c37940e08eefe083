#pragma once

#include <functional>
#include <string_view>

#include "k8s/projection.h"
#include "k8s/value_tree.h"

namespace lpp::k8s {

/// Reading Kubernetes' protobuf, which costs both sides a fraction of what JSON does. What a
/// projection asks for comes as the values that the server would have sent as JSON, so that one
/// decoder serves both; an empty text may stand where JSON has nothing. Texts stay where they are,
/// in `body` or `frame`. Free functions without state but the tree they fill; they never throw.
/// What is not such a message gives null.

/// An answer's body is protobuf, and not JSON.
bool is_protobuf(std::string_view body);

/// An object, with its "kind".
Value read_protobuf(std::string_view body, Projection projection, ValueTree& tree);

/// What a frame of a watch says that it is; empty when it cannot be read. Comes before its object:
/// that of an ERROR has other fields.
std::string_view protobuf_frame_type(std::string_view frame);

/// A frame of a watch, as {"type", "object"}; `projection` is that of the object.
Value read_protobuf_frame(std::string_view frame, Projection projection, ValueTree& tree);

/// A list: its items go to `on_item` one by one, each valid until it returns; gives {"metadata"}.
/// Some items may have been delivered when the result is null. `projection` is that of the items.
Value read_protobuf_list(std::string_view body, const std::function<void(Value)>& on_item,
                         Projection projection, ValueTree& tree);

}  // namespace lpp::k8s
