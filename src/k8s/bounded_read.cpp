// SPDX-License-Identifier: Apache-2.0
#include "k8s/bounded_read.h"

#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/strings.h"
#include "base/sync.h"
#include "k8s/tls_context.h"

namespace lpp::k8s {

namespace {

constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::milliseconds kSlice{20};

Error unavailable(std::string message) {
  return {.code = ErrorCode::kUnavailable, .message = std::move(message)};
}

}  // namespace

struct BoundedRead::State {
  Mutex mutex;
  CondVar changed;
  bool running LPP_GUARDED_BY(mutex) = false;
  TimePoint late LPP_GUARDED_BY(mutex){};         // the running one is not waited for any longer
  std::uint64_t reads LPP_GUARDED_BY(mutex) = 0;  // that have ended
  std::optional<Result<std::string>> last LPP_GUARDED_BY(mutex);

  void ended(Result<std::string> content) {
    MutexLock lock(mutex);
    running = false;
    ++reads;
    last = std::move(content);
    changed.notify_all();
  }
};

BoundedRead::BoundedRead(std::string path, Clock& clock)
    : path_(std::move(path)), clock_(clock), state_(std::make_shared<State>()) {}

void BoundedRead::begin() const {
  try {
    std::thread([state = state_, path = path_] {
      set_thread_name("file");
      state->ended(read_small_file(path));
    }).detach();
  } catch (const std::system_error& error) {  // a limit of the container
    state_->ended(unavailable("no thread to read " + path_ + ": " + error.what()));
  }
}

Result<std::string> BoundedRead::read() const {
  bool begins = false;
  std::uint64_t seen = 0;
  {
    MutexLock lock(state_->mutex);
    begins = !std::exchange(state_->running, true);
    if (begins) state_->late = clock_.now() + kPatience;
    seen = state_->reads;
  }
  if (begins) begin();
  MutexLock lock(state_->mutex);
  while (state_->reads == seen) {
    const TimePoint now = clock_.now();
    if (now >= state_->late) return unavailable(path_ + " did not answer in time");
    clock_.wait_until(state_->changed, state_->mutex, now + kSlice);
  }
  return *state_->last;
}

}  // namespace lpp::k8s
