#include "k8s/store.h"

#include <doctest/doctest.h>

#include <string>

using namespace lpp;       // NOLINT(google-build-using-namespace): a test file
using namespace lpp::k8s;  // NOLINT(google-build-using-namespace): a test file

namespace {

std::shared_ptr<const std::string> text(const char* value) {
  return std::make_shared<const std::string>(value);
}

}  // namespace

TEST_CASE("a store gives what was put, and the writer what was there before") {
  StoreWriter<std::string> writer;
  const Store<std::string>& store = writer;
  CHECK(store.get({"ns", "a"}) == nullptr);
  CHECK(writer.put({"ns", "a"}, text("1")) == nullptr);
  CHECK(*writer.put({"ns", "a"}, text("2")) == "1");
  CHECK(*store.get({"ns", "a"}) == "2");
  CHECK(store.get({"", "a"}) == nullptr);
  CHECK(store.size() == 1);
  CHECK(*writer.erase({"ns", "a"}) == "2");
  CHECK(writer.erase({"ns", "a"}) == nullptr);
  CHECK(store.list().empty());
}

TEST_CASE("a swap replaces everything at once, and snapshots stay as they were") {
  StoreWriter<std::string> store;
  store.put({"", "a"}, text("old"));
  const auto snapshot = store.get({"", "a"});
  const auto before = store.swap({{{"", "b"}, text("new")}});
  CHECK(before.size() == 1);
  CHECK(*before.at({"", "a"}) == "old");
  CHECK(store.get({"", "a"}) == nullptr);
  CHECK(*store.get({"", "b"}) == "new");
  CHECK(store.list().size() == 1);
  CHECK(*snapshot == "old");
}
