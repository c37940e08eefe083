// SPDX-License-Identifier: Apache-2.0
#include "agent/http_request.h"

#include <doctest/doctest.h>

namespace lpp::agent {
namespace {

const std::string kGood =
    "POST /agent/v1/poll HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer abc\r\nContent-Length: 2\r\n";

int status_of(const std::string& text) {
  const auto head = parse_head(text);
  return head.ok() ? 200 : head.error().http_status;
}

TEST_CASE("a request's head is read as soon as it is complete, and not before") {
  const std::string whole = kGood + "\r\n{}";
  for (std::size_t size = 0; size < whole.size() - 2; ++size) {
    const auto head = parse_head(whole.substr(0, size));
    REQUIRE(head.ok());
    CHECK_FALSE(head->has_value());
  }
  const auto head = parse_head(whole);
  REQUIRE(head.ok());
  REQUIRE(head->has_value());
  CHECK((*head)->target == "/agent/v1/poll");
  CHECK((*head)->token == "abc");
  CHECK((*head)->body == 2);
  CHECK((*head)->keep_alive);
  CHECK((*head)->size == whole.size() - 2);
}

TEST_CASE("names of headers and the scheme are read in any case, and what is unknown is ignored") {
  const auto head = parse_head(
      "POST /x HTTP/1.1\r\nAUTHORIZATION:bearer  t \r\ncontent-length:0\r\nX-Y:z\r\n\r\n");
  CHECK(head.value()->token == "t");
  CHECK(parse_head("POST /x HTTP/1.1\r\nAuthorization: Basic abc\r\nContent-Length: 0\r\n\r\n")
            .value()
            ->token.empty());
}

TEST_CASE("a connection ends with the answer when the client says so, or is of an older version") {
  CHECK_FALSE(parse_head(kGood + "Connection: Close\r\n\r\n").value()->keep_alive);
  CHECK_FALSE(parse_head("POST /x HTTP/1.0\r\nContent-Length: 0\r\n\r\n").value()->keep_alive);
}

TEST_CASE("what agents do not say is refused, each with its own status") {
  CHECK(status_of("GET /x HTTP/1.1\r\n\r\n") == 405);
  CHECK(status_of("POST /x HTTP/1.1\r\n\r\n") == 411);
  CHECK(status_of("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == 411);
  CHECK(status_of(kGood + "Transfer-Encoding: chunked\r\n\r\n") == 411);
  CHECK(status_of(kGood + "Content-Length: 2\r\n\r\n") == 400);
  for (const char* length : {"", "-1", "+1", "1x", "0x1", "1, 1", "99999999999999999999999"}) {
    CHECK(status_of("POST /x HTTP/1.1\r\nContent-Length: " + std::string(length) + "\r\n\r\n") ==
          400);
  }
  for (const char* line : {"no colon", ": no name", " folded: x", "space : x"}) {
    CHECK(status_of(kGood + line + "\r\n\r\n") == 400);
  }
  for (const char* first : {"", "POST", "POST /x", "POST /x HTTP/2", "POST /x y HTTP/1.1"}) {
    CHECK(status_of(std::string(first) + "\r\nContent-Length: 0\r\n\r\n") == 400);
  }
  CHECK(status_of(kGood + std::string("X: \0\r\n\r\n", 9)) == 400);
  CHECK(status_of(kGood + std::string(kMaxHttpHead, 'x')) == 431);
  CHECK(status_of(std::string(kMaxHttpHead, 'x')) == 431);
}

TEST_CASE("an answer says how long it is, and whether another one may follow") {
  CHECK(answer_text(200, "{}", false) ==
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  const std::string busy = answer_text(429, "no", true);
  CHECK(busy.find("Retry-After: 1\r\n") != std::string::npos);
  CHECK(busy.find("Connection: close\r\n") != std::string::npos);
}

}  // namespace
}  // namespace lpp::agent
