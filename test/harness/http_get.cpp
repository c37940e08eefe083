// SPDX-License-Identifier: Apache-2.0
#include "harness/http_get.h"

#include <httplib.h>
#include <unistd.h>

#include "harness/loopback.h"

namespace lpp::testing {

Result<HttpAnswer> http_get(int port, const std::string& path, std::chrono::milliseconds timeout) {
  httplib::Client client("127.0.0.1", port);
  client.set_connection_timeout(timeout);
  client.set_read_timeout(timeout);
  client.set_write_timeout(timeout);
  auto answer = client.Get(path);
  if (!answer) {
    return Error{.code = ErrorCode::kUnavailable, .message = httplib::to_string(answer.error())};
  }
  return HttpAnswer{.status = answer->status, .body = std::move(answer->body)};
}

int free_port() {
  const Listener listener = listen_on_loopback();  // if it fails, so will the use of port 0
  ::close(listener.fd);
  return listener.port;
}

}  // namespace lpp::testing
