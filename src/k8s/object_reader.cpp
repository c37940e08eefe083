#include "k8s/object_reader.h"

#include <nlohmann/json.hpp>

#include "k8s/json_reader.h"
#include "k8s/protobuf_reader.h"

namespace lpp::k8s {

using nlohmann::json;

Value read_object(std::string_view body, Projection projection, ValueTree& tree) {
  if (is_protobuf(body)) return read_protobuf(body, projection, tree);
  return tree.assign(read_json(body, projection));
}

Value read_frame(std::string_view frame, Projection projection, ValueTree& tree) {
  // The tag of an event's first field, which in a line of JSON would be its end.
  if (frame.starts_with('\n')) return read_protobuf_frame(frame, projection, tree);
  return tree.assign(read_json_frame(frame, projection));
}

Value read_list(std::string_view body, const std::function<void(Value)>& on_item,
                Projection projection, ValueTree& tree) {
  if (is_protobuf(body)) return read_protobuf_list(body, on_item, projection, tree);
  ValueTree item;
  const auto on_json = [&](const json& object) { on_item(item.assign(object)); };
  return tree.assign(read_json_list(body, on_json, projection));
}

}  // namespace lpp::k8s
