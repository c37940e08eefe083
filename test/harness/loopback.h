// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace lpp::testing {

/// That port of 127.0.0.1, or of another address beside it.
inline sockaddr_in loopback(int port, std::uint32_t beside = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + beside);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace lpp::testing
