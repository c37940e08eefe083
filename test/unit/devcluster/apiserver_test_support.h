// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "devcluster/apiserver/server.h"
#include "unit/devcluster/registry_test_support.h"

/// A running API server on a free port and clients that talk to it.
namespace lpp::devcluster::test {

class Server {
 public:
  explicit Server(ApiServer::Options options = {}) : api(registry, std::move(options)) {
    const auto started = api.start();
    REQUIRE(started.ok());
  }

  httplib::Headers headers() const {
    return {{"Authorization", "Bearer " + api.admin_token()}, {"User-Agent", "test/1.0"}};
  }

  std::unique_ptr<httplib::SSLClient> client() const {
    auto out = std::make_unique<httplib::SSLClient>("127.0.0.1", api.port());
    // Trust is a test of its own (kubectl and the daemon check the certificate).
    out->enable_server_certificate_verification(false);
    out->set_default_headers(headers());
    out->set_keep_alive(true);
    out->set_tcp_nodelay(true);
    out->set_read_timeout(60);
    return out;
  }

  Registry registry;
  ApiServer api;
};

inline Json json_of(const httplib::Result& result) {
  REQUIRE(result);
  return Json::parse(result->body);
}

/// A watch on a thread of its own; lines are collected as they come.
class WatchStream {
 public:
  WatchStream(const Server& server, const std::string& path, const std::string& accept = "*/*")
      : client_(server.client()), thread_([this, path, accept] { run(path, accept); }) {}
  ~WatchStream() {
    while (!ended_) {
      client_->stop();
      std::this_thread::yield();
    }
    thread_.join();
  }
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;

  /// The n-th frame, from 0; null when it does not come in time.
  Json frame(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return lines_.size() > n || ended_; });
    return lines_.size() > n ? Json::parse(lines_[n], nullptr, false) : Json();
  }
  bool wait_ended() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return ended_.load(); });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }
  /// Bytes after the last whole line.
  std::string rest() {
    const std::lock_guard lock(mutex_);
    return rest_;
  }
  bool cleanly_ended() const { return ended_ && clean_; }

 private:
  void run(const std::string& path, const std::string& accept) {
    const auto result = client_->Get(
        path.c_str(), {{"Accept", accept}}, [this](const char* data, std::size_t size) {
          const std::lock_guard lock(mutex_);
          rest_.append(data, size);
          for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
            lines_.push_back(rest_.substr(0, end));
            rest_.erase(0, end + 1);
          }
          changed_.notify_all();
          return true;
        });
    const std::lock_guard lock(mutex_);
    clean_ = static_cast<bool>(result);
    ended_ = true;
    changed_.notify_all();
  }

  std::unique_ptr<httplib::SSLClient> client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  std::string rest_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> clean_ = false;
  std::thread thread_;
};

}  // namespace lpp::devcluster::test
