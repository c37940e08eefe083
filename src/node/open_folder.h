// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "node/kernel.h"

namespace lpp::node {

/// Called on the thread that works, each time that so many more files and folders are done.
using ProgressSink = std::function<void(std::uint64_t done)>;
inline constexpr std::uint64_t kProgressEvery = 256;

/// A folder of a tree that is walked through, with a batch of its names: memory does not grow with
/// the number of files. Its names may change meanwhile. One thread only.
class OpenFolder {
 public:
  struct Entry {
    std::uint64_t inode = 0;
    std::uint32_t name = 0;  // where in the batch
    unsigned char type = 0;  // DT_*, as it was when the name was read
  };

  /// `name`: in the folder above; "" at the top.
  OpenFolder(UniqueFd fd, std::string name) : name_(std::move(name)), fd_(std::move(fd)) {}

  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }
  const char* name_of(const Entry& entry) const { return batch_.get() + entry.name; }

  /// Without "." and "..". nullptr at the end; then errno says whether it is one.
  const Entry* next(Kernel& kernel);

 private:
  void take(std::size_t size);

  std::string name_;
  UniqueFd fd_;
  std::unique_ptr<char[]> batch_{};  // not a std::vector, which would fill it with zeros
  std::vector<Entry> entries_{};
  std::size_t at_ = 0;
};

/// "a/b/": the way from the top.
std::string path_of(const std::vector<OpenFolder>& levels);

}  // namespace lpp::node
