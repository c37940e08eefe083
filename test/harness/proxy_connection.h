// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "harness/fault_proxy.h"
#include "harness/http_wire.h"

namespace lpp::testing {

/// One client connection of the proxy, with its own connection to the API server.
class FaultProxy::Connection final : public Served {
 public:
  Connection(FaultProxy& proxy, UniqueFd client);

  void run() override;
  void end() override;

 private:
  struct Message {
    MessageHead head;
    ApiRequest request;
  };

  Result<std::optional<Message>> read_request();
  /// True when the connection can serve another request.
  bool serve(const Message& message);
  bool forward(const Message& message, const Decision& decision);
  bool reply(const ApiRequest& request, const Decision& decision);
  /// Sends the request and reads the head of the answer.
  Result<MessageHead> ask_upstream(const Message& message);
  Result<void> ensure_upstream();
  void drop_upstream();
  Result<void> send_answer(const Message& message, const MessageHead& head,
                           const Decision& decision);
  Result<void> send_piece(const ApiRequest& request, std::string_view piece, bool chunked);
  Result<void> send_frames(const ApiRequest& request, std::string_view piece);
  Result<void> write_body(std::string_view data, bool chunked);
  /// Waits until the API server has sent something; an error when the client leaves meanwhile.
  Result<void> wait_for_upstream();

  FaultProxy& proxy_;
  TlsStream client_;
  HttpReader client_reader_{client_};
  Mutex mutex_;  // guards the upstream pointer against end(), which comes from another thread
  std::unique_ptr<TlsStream> upstream_;
  std::optional<HttpReader> upstream_reader_;
  std::atomic<bool> cut_ = false;

  // The answer being sent.
  std::string frame_;            // a started frame of a watch
  bool counted_frames_ = false;  // frames come after their length, as protobuf does
  std::size_t body_left_ = std::string::npos;
  std::chrono::milliseconds pause_{0};
};

}  // namespace lpp::testing
