// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "k8s/projection.h"
#include "k8s/value_tree.h"

namespace lpp::k8s {

/// Reading answers in either format that an API server speaks, JSON or protobuf: their first bytes
/// tell which it is. Results are those of json_reader.h and protobuf_reader.h, in a tree that the
/// caller lends; null when it cannot be read. Protobuf is never asked for, and not read, without a
/// projection. Free functions without other state; they never throw.

/// An object; "kind" may be missing.
Value read_object(std::string_view body, Projection projection, ValueTree& tree);

/// What is looked at of a Status.
Projection status_fields();

/// A frame of a watch as ApiClient::watch() gives it; `projection` is that of its "object". That of
/// an ERROR frame is a Status, and read as such.
Value read_frame(std::string_view frame, Projection projection, ValueTree& tree);

}  // namespace lpp::k8s
