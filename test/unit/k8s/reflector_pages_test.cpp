// SPDX-License-Identifier: Apache-2.0
// How much of a list is asked for at once.

#include "reflector_fixture.h"

namespace lpp::testing {
namespace {

std::string page_of(int items, std::size_t bytes_each, const std::string& next) {
  json list = {{"metadata", {{"resourceVersion", "5"}, {"continue", next}}}};
  const std::string padding(bytes_each, 'x');
  for (int i = 0; i < items; ++i) {
    list["items"].push_back({{"metadata", {{"name", "p"}}}, {"padding", padding}});
  }
  return list.dump();
}

constexpr std::size_t kMiB = std::size_t{1} << 20U;

TEST_CASE("pages become smaller when objects are large, and large again when they are not") {
  ReflectorFixture f({.resource = kPods});
  auto& script = f.transport.on("GET", kList);
  for (const auto& page :
       {page_of(4, kMiB, "1"), page_of(3, 3 * kMiB, "2"), page_of(1, 9 * kMiB, "3"),
        page_of(1, 10, "4"), page_of(0, 0, "5"), page_of(1, 10, "")}) {
    script.reply(200, page);
  }
  const std::vector<std::string> wanted{"250", "7", "2", "1", "250", "250"};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    f.step();
    CHECK(parameter(f.transport, i, "limit") == wanted[i]);
  }
  CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
}

TEST_CASE("a page that does not come in time is asked for with fewer objects") {
  ReflectorFixture f({.resource = kPods});
  auto& script = f.transport.on("GET", kList);
  for (int i = 0; i < 9; ++i) script.fail(ErrorCode::kTimeout);
  script.reply(200, page_of(1, 10, ""));
  const std::vector<std::string> wanted{"250", "125", "62", "31", "15", "7", "3", "1", "1", "1"};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    f.step();
    CHECK(parameter(f.transport, i, "limit") == wanted[i]);
  }
}

}  // namespace
}  // namespace lpp::testing
