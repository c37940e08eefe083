#include "k8s/object_reader.h"

#include <nlohmann/json.hpp>

#include "k8s/json_reader.h"
#include "k8s/protobuf_reader.h"

namespace lpp::k8s {

using nlohmann::json;

json read_object(std::string_view body, Projection projection) {
  return is_protobuf(body) ? read_protobuf(body, projection) : read_json(body, projection);
}

json read_frame(std::string_view frame, Projection projection) {
  // The tag of an event's first field, which in a line of JSON would be its end.
  const bool protobuf = frame.starts_with('\n');
  return protobuf ? read_protobuf_frame(frame, projection) : read_json_frame(frame, projection);
}

json read_list(std::string_view body, const std::function<void(const json&)>& on_item,
               Projection projection) {
  return is_protobuf(body) ? read_protobuf_list(body, on_item, projection)
                           : read_json_list(body, on_item, projection);
}

}  // namespace lpp::k8s
