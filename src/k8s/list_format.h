// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string_view>

#include "k8s/list_reader.h"

namespace lpp::k8s {

/// What stands around the items of a list, as one format writes it: finds where parts begin and
/// end, and does not look into them. Malformed input is the exception Malformed.
class ListReader::Format {
 public:
  struct Malformed : std::exception {};

  /// The bytes of one item, or of the list's metadata; valid until it returns.
  using OnPart = std::function<void(std::string_view)>;
  struct Parts {
    OnPart item;
    OnPart metadata;
  };

  Format() = default;
  Format(const Format&) = delete;
  Format& operator=(const Format&) = delete;
  virtual ~Format() = default;

  virtual void feed(std::string_view chunk) = 0;
  /// Throws when something is missing at the end.
  virtual void finish() = 0;
};

/// No part is longer than `max_part` bytes.
std::unique_ptr<ListReader::Format> make_json_list(ListReader::Format::Parts parts,
                                                   std::size_t max_part);
std::unique_ptr<ListReader::Format> make_protobuf_list(ListReader::Format::Parts parts,
                                                       std::size_t max_part);

}  // namespace lpp::k8s
