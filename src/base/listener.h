// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lpp {

/// A listening socket on all addresses: IPv6 and IPv4, or IPv4 alone where there is no IPv6; port 0
/// = any free one. The caller closes it. -1 with errno when the port cannot be had.
int listen_on(int port, int backlog);

/// Of a socket that is bound.
int port_of(int socket);

}  // namespace lpp
