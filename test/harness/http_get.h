// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace lpp::testing {

struct HttpAnswer {
  int status = 0;
  std::string body{};
};

/// GET http://127.0.0.1:port/path on a connection of its own.
Result<HttpAnswer> http_get(int port, const std::string& path,
                            std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// Whether a program could listen on that port of all addresses, as ours do: nothing does so on any
/// of them.
bool can_listen(int port);

/// A port on which nothing listens at the moment, and that no other test process gets from here
/// before it is used; another program may take it.
int free_port();

}  // namespace lpp::testing
