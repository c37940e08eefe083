// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lpp::testing {

/// A process that outlived its pod: exchanges pairs of names of its volume, one after another,
/// until the object goes. Owns its thread.
class NameExchanger {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  NameExchanger(const std::filesystem::path& volume, Pairs pairs)
      : folder_(open(volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        thread_([this, pairs = std::move(pairs)] {
          for (std::size_t i = 0; !stop_; i = (i + 1) % pairs.size()) {
            const auto& [one, other] = pairs[i];
            renameat2(folder_, one.c_str(), folder_, other.c_str(), RENAME_EXCHANGE);
          }
        }) {}
  ~NameExchanger() {
    stop_ = true;
    thread_.join();
    close(folder_);
  }
  NameExchanger(const NameExchanger&) = delete;
  NameExchanger& operator=(const NameExchanger&) = delete;

 private:
  std::atomic<bool> stop_{false};
  int folder_;
  std::thread thread_;
};

}  // namespace lpp::testing
