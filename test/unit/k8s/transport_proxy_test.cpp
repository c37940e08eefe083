// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "k8s/base64.h"
#include "k8s/proxy.h"
#include "k8s/server_url.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file

namespace {

std::string proxy_for(const std::string& host, const std::string& no_proxy, int port = 443) {
  const std::map<std::string, std::string> env{{"HTTPS_PROXY", "http://p:1"},
                                               {"NO_PROXY", no_proxy}};
  return proxy_from_environment(true, host, port, [&](const std::string& name) {
    const auto it = env.find(name);
    return it == env.end() ? std::nullopt : std::optional(it->second);
  });
}

}  // namespace

TEST_CASE("NO_PROXY follows Go's rules") {
  struct Row {
    const char* host;
    const char* no_proxy;
    bool direct;
    int port = 443;
  };
  const std::vector<Row> rows{
      {"a.com", "", false},
      {"localhost", "", true},
      {"127.0.0.1", "", true},
      {"127.8.9.1", "", true},
      {"::1", "", true},
      {"localhost.com", "", false},
      {"a.com", "*", true},
      {"a.com", "b.com, a.com", true},
      {"A.com", "a.COM", true},
      {"x.a.com", "a.com", true},
      {"xa.com", "a.com", false},
      {"a.com", ".a.com", false},
      {"x.a.com", ".a.com", true},
      {"x.a.com", "*.a.com", true},
      {"a.com", "*.a.com", false},
      {"a.com", "a.com:443", true},
      {"a.com", "a.com:444", false},
      {"a.com", "a.com:444", true, 444},
      {"10.1.2.3", "10.0.0.0/8", true},
      {"11.1.2.3", "10.0.0.0/8", false},
      {"10.1.2.3", "10.1.2.3", true},
      {"10.1.2.3", "10.1.2.3:443", true},
      {"10.1.2.3", "10.1.2.3:1", false},
      {"10.1.2.3", "0.0.0.0/0", true},
      {"fd00::7", "fd00::/16", true},
      {"fd00::7", "fe00::/16", false},
      {"fd00::7", "fd00:0::0007", true},
      {"fd00::7", "[fd00::7]:443", true},
      {"fd00::7", "[fd00::7]:1", false},
      {"fd00::7", "0.0.0.0/0", false},
      {"10.1.2.3", "::/0", false},
      {"a.com", "10.0.0.0/8", false},
      {"a.com", " , ,:,:443,[],/8,10.0.0.0/99,10.0.0.0/x,*.,.", false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.host);
    CAPTURE(row.no_proxy);
    CHECK(proxy_for(row.host, row.no_proxy, row.port).empty() == row.direct);
  }
}

TEST_CASE("each scheme has its variable, upper case first") {
  std::map<std::string, std::string> env{{"HTTPS_PROXY", "s"}, {"http_proxy", "h"}};
  const auto getenv = [&](const std::string& name) {
    const auto it = env.find(name);
    return it == env.end() ? std::nullopt : std::optional(it->second);
  };
  CHECK(proxy_from_environment(true, "a", 1, getenv) == "s");
  CHECK(proxy_from_environment(false, "a", 1, getenv) == "h");
  env["HTTP_PROXY"] = "H";
  CHECK(proxy_from_environment(false, "a", 1, getenv) == "H");
  env.clear();
  CHECK(proxy_from_environment(true, "a", 1, getenv).empty());
}

TEST_CASE("proxy URLs are taken apart; other kinds of proxies are refused") {
  const auto plain = parse_proxy_url("http://[fd00::1]:3128/");
  REQUIRE(plain.ok());
  CHECK(plain->host == "fd00::1");
  CHECK(plain->port == 3128);
  CHECK(plain->authorization.empty());
  const auto bare = parse_proxy_url("proxy.example.com:8080");
  REQUIRE(bare.ok());
  CHECK(bare->host == "proxy.example.com");
  CHECK(parse_proxy_url("http://p")->port == 80);
  const auto user = parse_proxy_url("http://u%40x:p%3aw%@p:1");
  REQUIRE(user.ok());
  CHECK(user->authorization == "Basic " + base64_encode("u@x:p:w%"));
  for (const char* url : {"https://p:1", "socks5://p:1", "socks5h://p:1", "ftp://p", "http://",
                          "http://p:0", "http://secret@", "http://a b"}) {
    CAPTURE(url);
    const auto refused = parse_proxy_url(url);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().is(ErrorCode::kInvalid));
    CHECK(refused.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("base64 is exact in both directions and refuses what it is not") {
  CHECK(base64_encode("") == "");
  CHECK(base64_encode("f") == "Zg==");
  CHECK(base64_encode("fo") == "Zm8=");
  CHECK(base64_encode("foo") == "Zm9v");
  CHECK(base64_decode("Zm9v\n YmFy\r\n") == "foobar");
  std::mt19937 random(3);  // the same bytes each time
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(random() & 255U);
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
  }
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "=", "Zm9v=", "Zm9v====", "Zg==Zg==", "Zm-_", "Zm9*", "Zm=v"}) {
    CAPTURE(text);
    CHECK_FALSE(base64_decode(text).has_value());
  }
}
