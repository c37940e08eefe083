// SPDX-License-Identifier: Apache-2.0
#include "text/dns_names.h"

#include <doctest/doctest.h>

#include <string>

namespace lpp::text {
namespace {

TEST_CASE("names are judged as the API server judges them") {
  const std::string label63(63, 'a');
  CHECK(is_dns_label("a-1"));
  CHECK(is_dns_label(label63));
  for (const std::string& bad :
       {std::string(), label63 + "a", std::string("-a"), std::string("a-"), std::string("A"),
        std::string("a.b"), std::string("a/b"), std::string("a b"), std::string("ä")}) {
    CAPTURE(bad);
    CHECK_FALSE(is_dns_label(bad));
  }

  const std::string subdomain253 = "a" + std::string(252, 'b');
  CHECK(is_dns_subdomain("a.b-c.1"));
  CHECK(is_dns_subdomain(subdomain253));
  for (const std::string& bad :
       {std::string(), subdomain253 + "c", std::string("a..b"), std::string(".a"),
        std::string("a."), std::string("a.-b"), std::string("a_b"), std::string("A")}) {
    CAPTURE(bad);
    CHECK_FALSE(is_dns_subdomain(bad));
  }
}

}  // namespace
}  // namespace lpp::text
