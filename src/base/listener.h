// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lpp {

/// A listening socket on the address, which is IPv4 or IPv6 in numbers; "" = on all: IPv6 and IPv4,
/// or IPv4 alone where there is no IPv6. Port 0 = any free one. The caller closes it. -1 with errno
/// when it cannot be had.
int listen_on(int port, int backlog, const std::string& address = {});

/// Whether listen_on() could take it.
bool is_address(const std::string& text);

/// Of a socket that is bound.
int port_of(int socket);

}  // namespace lpp
