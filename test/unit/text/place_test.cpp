// SPDX-License-Identifier: Apache-2.0
#include "text/place.h"

#include <doctest/doctest.h>

#include <string>

namespace lpp::text {
namespace {

std::string shown(std::string_view text, std::size_t offset) {
  const Place place = place_at(text, offset);
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

TEST_CASE("a place counts lines and bytes from 1; a line break ends its line") {
  CHECK(shown("", 0) == "1:1");
  CHECK(shown("ab\ncd", 0) == "1:1");
  CHECK(shown("ab\ncd", 2) == "1:3");
  CHECK(shown("ab\ncd", 3) == "2:1");
  CHECK(shown("ab\ncd", 4) == "2:2");
  CHECK(shown("\n\nx", 2) == "3:1");
  CHECK(shown("ab\ncd", 99) == "2:3");
}

}  // namespace
}  // namespace lpp::text
