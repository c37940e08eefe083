// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "node/volumes.h"
#include "operation/usage.h"

namespace lpp::agent {

/// What an agent knows of its volumes' usage, and what of that the controller has heard. A change
/// that is small is no news: below one percent of the limit and below 1 MiB. Volumes beyond
/// kMaxUses are not told. One thread at a time.
class UsageNotes {
 public:
  using Seen = std::map<std::string, operation::Usage>;  // by path of the directory

  /// Adds the volumes of a base path that are measured, and in their place.
  static void add(const std::string& base_path, const std::vector<node::VolumeUsage>& volumes,
                  Seen& to);

  /// That is all there is now.
  void saw(const Seen& seen);
  /// The controller knows nothing.
  void tell_anew();

  bool any_news() const { return news_ > 0; }
  std::size_t count_news() const { return news_; }
  /// At most kMaxUses, in a message of at most so many bytes. One at least if there is any.
  std::vector<Use> news(std::size_t most_bytes) const;
  /// The controller has heard that.
  void told(const std::vector<Use>& uses);

 private:
  struct Note {
    std::optional<operation::Usage> seen{};
    std::optional<operation::Usage> told{};
    bool is_news() const;
  };
  void tidy_up();

  std::map<std::string, Note> notes_{};
  std::size_t news_ = 0;
};

}  // namespace lpp::agent
