// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "devcluster/node/process_host.h"
#include "harness/file_text.h"

namespace lpp::devcluster {

namespace {

std::string older(const std::string& path) { return path + ".1"; }

int open_log(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

}  // namespace

BoundedLog::BoundedLog(std::string path) : path_(std::move(path)), fd_(open_log(path_)) {}

BoundedLog::~BoundedLog() {
  if (fd_ >= 0) close(fd_);
}

void BoundedLog::append(std::string_view text) {
  if (size_ + text.size() > kLimit / 2 && size_ > 0) {
    close(fd_);
    std::rename(path_.c_str(), older(path_).c_str());
    fd_ = open_log(path_);
    size_ = 0;
  }
  size_ += text.size();
  while (fd_ >= 0 && !text.empty()) {
    const ssize_t n = write(fd_, text.data(), text.size());
    if (n <= 0) return;  // a full disk costs log lines, nothing else
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string BoundedLog::read(const std::string& path) {
  return lpp::testing::text_of(older(path)) + lpp::testing::text_of(path);
}

}  // namespace lpp::devcluster
