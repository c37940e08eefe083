// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "k8s/projection.h"
#include "k8s/value_tree.h"

namespace lpp::k8s {

/// Reading Kubernetes' protobuf, which costs both sides a fraction of what JSON does. What a
/// projection asks for comes as the values that the server would have sent as JSON, so that one
/// decoder serves both; an empty text may stand where JSON has nothing. Texts stay where they are,
/// in `body` or `frame`. Free functions without state but the tree they fill; they never throw.
/// What is not such a message gives null.

/// What every answer in protobuf begins with.
inline constexpr std::string_view kProtobufMagic("k8s\0", 4);

/// An answer's body is protobuf, and not JSON.
bool is_protobuf(std::string_view body);

/// An object, with its "kind".
Value read_protobuf(std::string_view body, Projection projection, ValueTree& tree);

/// What a frame of a watch says that it is; empty when it cannot be read. Comes before its object:
/// that of an ERROR has other fields.
std::string_view protobuf_frame_type(std::string_view frame);

/// A frame of a watch, as {"type", "object"}; `projection` is that of the object.
Value read_protobuf_frame(std::string_view frame, Projection projection, ValueTree& tree);

/// The parts of a list, see ListReader: an item, which has no "kind", the metadata, as
/// {"metadata"}, and the kind that a TypeMeta says.
Value read_protobuf_message(std::string_view bytes, Projection projection, ValueTree& tree);
Value read_protobuf_list_metadata(std::string_view bytes, ValueTree& tree);
std::string_view protobuf_kind(std::string_view type_meta);

}  // namespace lpp::k8s
