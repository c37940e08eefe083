// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/sync.h"
#include "base/unique_fd.h"

namespace lpp::testing {

/// A socket that listens.
struct Listener {
  UniqueFd socket{};
  int port = 0;
};
/// At an IP address; port 0 = any free one.
Result<Listener> listen_on(const std::string& address = "127.0.0.1", int port = 0);

/// A connection that was accepted; it owns its socket.
class Served {
 public:
  virtual ~Served() = default;
  /// On a thread of its own. The connection is over when it returns.
  virtual void run() = 0;
  /// Makes run() return soon, whatever it waits for; by any thread, also after that.
  virtual void end() = 0;
};

/// Accepts connections and runs each on a thread of its own. Thread-safe.
class Acceptor {
 public:
  /// Makes a connection of a socket, on the accepting thread; nullptr = it is closed at once.
  using Make = std::function<std::unique_ptr<Served>(UniqueFd socket)>;

  /// The threads are called NAME-accept and NAME-conn.
  Acceptor(std::string name, Listener listener, Make make);
  ~Acceptor() { stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  int port() const { return port_; }
  /// Of the connections that run.
  std::size_t count() const;
  /// With each connection that runs; none comes or goes meanwhile.
  void for_each(const std::function<void(Served&)>& visit) const;
  /// Closes the port and ends all connections; returns when they are over. Repeatable.
  void stop();

 private:
  struct Running {
    explicit Running(std::unique_ptr<Served> accepted) : connection(std::move(accepted)) {}
    const std::unique_ptr<Served> connection;
    std::atomic<bool> over = false;
    std::jthread thread{};  // last: ends before the connection goes
  };

  void accept_all();
  void start(std::unique_ptr<Served> connection);
  /// Those that are over go.
  void reap();
  void wake() const;

  const std::string name_;
  Listener listener_;
  const int port_;
  const Make make_;
  const UniqueFd wake_;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  std::list<Running> running_ LPP_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: uses the others
};

}  // namespace lpp::testing
