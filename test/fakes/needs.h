// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

namespace lpp::testing {

/// A decorator of a test case: skips it where the machine lacks what it needs, and says so
/// ("skipped: NAME: what it needs"). CI has it all: its runs fail there.
struct Needs {
  Needs(bool met, const char* what) : skip(!met), why(what) {}
  void fill(doctest::detail::TestCase& test) const {
    if (!skip) return;
    test.m_skip = true;
    test.m_description = why;
  }
  const bool skip;
  const char* const why;
};

struct NeedsRoot : Needs {
  NeedsRoot() : Needs(::geteuid() == 0, "needs root") {}
};

// A macro: doctest names a test by a literal.
#define LPP_ROOT_TEST_CASE(name) TEST_CASE(name* lpp::testing::NeedsRoot())

/// What CI may lack, too, or has in another run: told ("not here: ..."), and no failure.
inline constexpr std::string_view kNotHere = "not here: ";

struct NeedsIpv6 : Needs {
  NeedsIpv6() : Needs(is_here(), "not here: IPv6 on loopback") {}
  static bool is_here() {
    const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const bool bound =
        fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (fd >= 0) ::close(fd);
    return bound;
  }
};

}  // namespace lpp::testing
