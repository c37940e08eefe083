// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace lpp::k8s {

/// Reads one small file, again and again, for calls that have a deadline: it may lie on a file
/// system that hangs. Each read has a thread of its own ("file"), one at a time; one that hangs
/// outlives its call and, harmlessly, this object. Thread-safe. The clock must outlive it.
class BoundedRead {
 public:
  BoundedRead(std::string path, Clock& clock);

  const std::string& path() const { return path_; }
  /// All of the file. kUnavailable when it does not come in half a second, and at once as long as
  /// an earlier read hangs.
  Result<std::string> read() const;

 private:
  struct State;
  void begin() const;

  std::string path_;
  Clock& clock_;
  std::shared_ptr<State> state_;
};

}  // namespace lpp::k8s
