// SPDX-License-Identifier: Apache-2.0
#include "k8s/list_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "k8s/json_reader.h"
#include "k8s/list_format.h"
#include "k8s/protobuf_reader.h"

namespace lpp::k8s {

ListReader::ListReader(Projection projection, OnItem on_item, std::size_t max_item)
    : projection_(projection), on_item_(std::move(on_item)), max_item_(max_item) {}

ListReader::~ListReader() = default;

bool ListReader::feed(std::string_view chunk) {
  if (!good_) return false;
  bytes_ += chunk.size();
  if (format_ == nullptr) {
    first_ += chunk;
    chunk = first_;
    const auto known = std::min(chunk.size(), kProtobufMagic.size());
    const bool protobuf = chunk.substr(0, known) == kProtobufMagic.substr(0, known);
    if (protobuf && known < kProtobufMagic.size()) return true;
    const auto hand_out = [this](Value item) {
      ++items_;
      on_item_(item);
    };
    if (protobuf) {
      format_ = make_protobuf_list(
          {.item =
               [=, this](std::string_view bytes) {
                 const Value item = read_protobuf_message(bytes, projection_, item_);
                 if (item.is_null()) throw Format::Malformed();
                 hand_out(item);
               },
           .metadata =
               [this](std::string_view bytes) {
                 metadata_ = bytes;
                 if (read_protobuf_list_metadata(metadata_, list_).is_null()) {
                   throw Format::Malformed();
                 }
               }},
          max_item_);
    } else {
      format_ = make_json_list({.item =
                                    [=, this](std::string_view bytes) {
                                      const auto item = read_json(bytes, projection_);
                                      if (item.is_discarded()) throw Format::Malformed();
                                      hand_out(item_.assign(item));
                                    },
                                .metadata =
                                    [this](std::string_view bytes) {
                                      const auto metadata = read_json(bytes);
                                      if (metadata.is_discarded()) throw Format::Malformed();
                                      list_.assign({{"metadata", metadata}});
                                    }},
                               max_item_);
    }
  }
  try {
    format_->feed(chunk);
  } catch (const Format::Malformed&) {
    good_ = false;
  }
  first_ = {};
  return good_;
}

Value ListReader::finish() {
  if (!good_ || format_ == nullptr) return {};
  try {
    format_->finish();
  } catch (const Format::Malformed&) {
    good_ = false;
    return {};
  }
  if (list_.root().is_null()) list_.assign(nlohmann::json::object());
  return list_.root();
}

}  // namespace lpp::k8s
