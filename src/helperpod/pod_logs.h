// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/sync.h"
#include "k8s/api_client.h"

namespace lpp::helperpod {

/// Reads what failed helper pods have said, on a thread of its own: the API server asks the node's
/// kubelet for it, and one that hangs must hold up nobody. Thread-safe; begin() and end() come from
/// one thread at a time.
class PodLogs {
 public:
  /// Nobody waits longer for a log; a failure is told without it then.
  static constexpr std::chrono::seconds kPatience{3};

  PodLogs(k8s::ApiClient& client, Clock& clock);
  ~PodLogs() { end(); }

  /// `on_read` is called with the pod's UID from the thread when its log has been read, or cannot
  /// be.
  void begin(std::function<void(const std::string& uid)> on_read);
  /// Cuts short what is being read.
  void end();

  struct Pod {
    k8s::ObjectKey key{};
    std::string uid{};
    std::string node{};
    std::string container{};
  };
  struct Log {
    bool known = false;    // what there is to know is known: it is not asked for any longer
    std::string text{};    // maybe nothing
    TimePoint known_by{};  // while it is not known
  };
  /// Asks for the log, once.
  Log read(const Pod& pod);
  void forget(std::string_view uid);

 private:
  struct Asked {
    TimePoint give_up{};
    bool known = false;
    std::string text{};
  };

  void run(const std::stop_token& stop);
  void read_one(k8s::ApiClient& client, const Pod& pod);

  k8s::ApiClient client_;
  Clock& clock_;
  std::function<void(const std::string&)> on_read_{};
  Mutex mutex_;
  CondVar changed_;
  bool reading_ LPP_GUARDED_BY(mutex_) = false;
  std::deque<Pod> queue_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Asked> asked_ LPP_GUARDED_BY(mutex_);  // by UID
  std::map<std::string, TimePoint> silent_ LPP_GUARDED_BY(mutex_);  // nodes that did not answer
  std::jthread thread_;
};

/// Writes the last lines of what a script said into our own log, marked as such.
void log_output(std::string_view text);

}  // namespace lpp::helperpod
