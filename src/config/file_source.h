// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "config/folder_watch.h"
#include "config/text_source.h"

namespace lpp::config {

/// See make_file_source(). One thread, "cfg-file", between start() and stop().
class FileSource final : public TextSource {
 public:
  struct Options {
    /// A change counts when nothing has happened for this long: writers need several calls ...
    Duration settle = std::chrono::milliseconds(50);
    /// ... but at the latest after this.
    Duration settle_limit = std::chrono::milliseconds(500);
    /// How often to look without being told: where inotify cannot help, and where it can (network
    /// file systems and replaced parent folders are not seen).
    Duration recheck_blind = std::chrono::seconds(5);
    Duration recheck = std::chrono::seconds(60);
    std::size_t max_bytes = 16UL * 1024 * 1024;
  };

  FileSource(std::string file, Clock& clock, Options options);
  ~FileSource() override;

  void start(Observer observer) override;
  void stop() override;
  const std::string& name() const override { return file_; }

 private:
  void run();
  /// Waits until the folder is quiet; false when stopping.
  bool settle();
  /// Tells the observer if this is news.
  void tell(Result<std::string> text);

  const std::string file_;
  Clock& clock_;
  const Options options_;
  FolderWatch watch_;
  Observer observer_;
  bool sees_changes_ = false;
  std::optional<Result<std::string>> last_;
  std::jthread thread_;
};

/// The whole content of a regular file. kNotFound, kForbidden, kInvalid (too big, not a file) or
/// kInternal, with the file's name and the system's reason.
Result<std::string> read_text_file(const std::string& file, std::size_t max_bytes);

}  // namespace lpp::config
