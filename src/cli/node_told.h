// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/context.h"
#include "cli/node_request.h"
#include "node/volumes.h"

namespace lpp::cli {

/// The lines that the daemon reads of a helper pod's message; docs/sizes.md describes them.
/// Nowhere else is there such a file. What it is made of must outlive it.
class Told {
 public:
  Told(const node::Volumes& volumes, const Context& context);

  void limits(const node::Limits& limits);
  /// After limits(). Worth no failure either.
  void used(const node::Volume& volume);
  void checked(const NodeRequest& request);
  /// What stands here takes the place of the log.
  void failed(const Error& error);
  void directory(std::string_view what);
  void send() const;

 private:
  const node::Volumes& volumes_;
  bool is_heard_;
  std::string lines_{};
};

}  // namespace lpp::cli
