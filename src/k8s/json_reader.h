#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "k8s/projection.h"

namespace lpp::k8s {

/// Reading what the API server sends, without holding more of it than is looked at: arrays called
/// "managedFields", a third of an object, are left out and not looked at, be they JSON or not. Free
/// functions without state; they never throw.

/// A JSON text as a value; discarded (is_discarded()) when it is not JSON or nested too deeply.
nlohmann::json read_json(std::string_view text, Projection projection = {});

/// A frame of a watch; `projection` is that of its "object".
nlohmann::json read_json_frame(std::string_view text, Projection projection);

/// Reads a list. Each element of "items" goes to `on_item` as soon as it is complete and is then
/// dropped; the list without its items is returned, discarded when the text is not JSON (some
/// items may have been delivered by then). "items" that is not an array stays in the result.
/// `projection` is that of the items; with one, only "metadata" of the list itself is kept.
nlohmann::json read_json_list(std::string_view text,
                              const std::function<void(const nlohmann::json&)>& on_item,
                              Projection projection = {});

}  // namespace lpp::k8s
