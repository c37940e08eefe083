// SPDX-License-Identifier: Apache-2.0
#include "config/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/strings.h"

namespace lpp::config {

namespace {

Error system_error(const std::string& file, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::kNotFound
                         : number == EACCES || number == EPERM ? ErrorCode::kForbidden
                                                               : ErrorCode::kInternal;
  return Error{.code = code,
               .message = file + ": cannot be read: " + std::generic_category().message(number)};
}

}  // namespace

Result<std::string> read_text_file(const std::string& file, std::size_t max_bytes) {
  // Non-blocking, so that a named pipe cannot hold us.
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return system_error(file, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error(file, errno);
  if (!S_ISREG(status.st_mode)) return invalid(file + ": is not a regular file");
  std::string text;
  std::array<char, 16384> buffer{};
  while (true) {
    const auto size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size == 0) return text;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error(file, errno);
    text.append(buffer.data(), static_cast<std::size_t>(size));
    if (text.size() > max_bytes) {
      return invalid(file + ": is longer than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

FileSource::FileSource(std::string file, Clock& clock, Options options)
    : file_(std::move(file)), clock_(clock), options_(options), watch_(file_) {}

FileSource::~FileSource() { stop(); }

void FileSource::start(Observer observer) {
  observer_ = std::move(observer);
  sees_changes_ = watch_.refresh();
  tell(read_text_file(file_, options_.max_bytes));
  thread_ = std::jthread([this] {
    set_thread_name("cfg-file");
    run();
  });
}

void FileSource::stop() {
  watch_.wake();
  if (thread_.joinable()) thread_.join();
}

void FileSource::run() {
  while (true) {
    const auto event = watch_.wait(sees_changes_ ? options_.recheck : options_.recheck_blind);
    if (event == FolderWatch::Event::kWoken) return;
    if (event == FolderWatch::Event::kChanged && !settle()) return;
    // First the watch, then the file: a change between the two is seen twice rather than never.
    sees_changes_ = watch_.refresh();
    auto text = read_text_file(file_, options_.max_bytes);
    if (!text.ok() && last_->ok()) {
      // The swap of a symlink may be half done, or an editor at work: ask once more.
      if (watch_.wait(options_.settle) == FolderWatch::Event::kWoken) return;
      sees_changes_ = watch_.refresh();
      text = read_text_file(file_, options_.max_bytes);
    }
    tell(std::move(text));
  }
}

bool FileSource::settle() {
  const TimePoint limit = clock_.now() + options_.settle_limit;
  while (clock_.now() < limit) {
    const auto event = watch_.wait(options_.settle);
    if (event == FolderWatch::Event::kWoken) return false;
    if (event == FolderWatch::Event::kNothing) break;
  }
  return true;
}

void FileSource::tell(Result<std::string> text) {
  if (last_.has_value() && same_text(*last_, text)) return;
  last_ = std::move(text);
  observer_(*last_);
}

}  // namespace lpp::config
