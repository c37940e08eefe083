// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "k8s/projection.h"
#include "k8s/value_tree.h"

namespace lpp::k8s {

/// Reads a list while it arrives, in either format, wherever its chunks end: no more of it is held
/// than one item, as long as that is not in one chunk. An item is handed out as soon as it is
/// complete. One thread; it does not throw, unless `on_item` does.
class ListReader {
 public:
  /// Valid until it returns.
  using OnItem = std::function<void(Value)>;

  /// The API server takes no object of more than 3 MiB; JSON may write each byte of it as six.
  static constexpr std::size_t kMaxItem = std::size_t{20} << 20U;

  /// `projection` is that of the items, and must outlive the reader; protobuf is not read without.
  ListReader(Projection projection, OnItem on_item, std::size_t max_item = kMaxItem);
  ~ListReader();

  /// False when this cannot be a list, or holds an item that is too long: then the rest need not
  /// come. Some items may have been handed out by then.
  bool feed(std::string_view chunk);

  /// After the last chunk: {"metadata"}, valid as long as the reader; null when this was no list,
  /// or not all of one.
  Value finish();

  /// So many bytes came, and so many items in them.
  std::size_t bytes() const { return bytes_; }
  std::size_t items() const { return items_; }

  /// What the reader needs of a format. Malformed input leaves feed() as an exception.
  class Format;

 private:
  const Projection projection_;
  const OnItem on_item_;
  const std::size_t max_item_;
  std::string first_;  // bytes, until they tell the format
  std::unique_ptr<Format> format_;
  bool good_ = true;
  std::size_t bytes_ = 0;
  std::size_t items_ = 0;
  ValueTree item_;
  std::string metadata_;
  ValueTree list_;  // with views of it
};

}  // namespace lpp::k8s
