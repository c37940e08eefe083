// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devcluster/demo.h"

namespace lpp::devcluster {

/// Sizes that hold: a pod's `dd` stops at the size of its claim, the claim grows, and what the
/// volume takes up can be seen. The disks of the nodes need project quota. As Demo else.
class QuotaDemo final : public Demo {
 public:
  using Demo::Demo;

 protected:
  nlohmann::json claim() const override;
  nlohmann::json pod() const override;
  Result<void> show() override;

 private:
  /// Prints what the pod says up to the line "-- NAME", once it is there, and checks that so much
  /// was written into the file of that name, and that df in the pod shows `size` as the whole.
  Result<void> watch_fill(const std::string& name, std::uintmax_t bytes, std::string_view size);
  Result<void> grow();
  Result<void> show_usage();
  /// Prints what Prometheus hears of the volume and of its path, and checks that it is so.
  Result<void> show_metrics();
  /// Prints a command as a person would type it, and what it says: that the volume is full.
  Result<void> show_full(const std::string& typed, const std::vector<std::string>& args);

  std::size_t printed_ = 0;  // of the pod's log
};

}  // namespace lpp::devcluster
