// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/result.h"
#include "harness/acceptor.h"

namespace lpp::testing {

/// A line between two processes that can be broken: a loopback port whose connections lead to
/// another one, byte for byte, so that TLS between the two stays their own. One thread for all
/// connections; all public methods are thread-safe.
class TcpRelay {
 public:
  static Result<std::unique_ptr<TcpRelay>> start(int target_port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  int port() const { return listener_.port; }

  /// Resets all connections; returns at once.
  void cut();
  /// While set, new connections are accepted and reset at once. Those that stand stay.
  void refuse(bool refuse) { refusing_ = refuse; }
  /// While set, nothing passes either way, and neither side is told.
  void hold(bool hold);

 private:
  struct Line;

  TcpRelay(int target_port, Listener listener);
  void run(const std::stop_token& stop);
  void accept_one(std::vector<Line>& lines) const;
  void wake() const;

  const int target_port_;
  const Listener listener_;
  const UniqueFd wake_;
  std::atomic<bool> refusing_ = false;
  std::atomic<bool> holding_ = false;
  std::atomic<bool> cut_ = false;

  std::jthread thread_;  // last: ends before the rest is destroyed
};

}  // namespace lpp::testing
