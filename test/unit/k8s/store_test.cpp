// SPDX-License-Identifier: Apache-2.0
#include "k8s/store.h"

#include <doctest/doctest.h>

#include <string>

#include "fakes/builders.h"
#include "k8s/objects.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file

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

TEST_CASE("a store's index follows what is put, replaced, erased and swapped") {
  const auto volume = [](const char* name, const char* path) {
    return testing::volume(name).host_path(path).shared();
  };
  StoreWriter<PersistentVolume> store;
  const auto at = [&](const char* path) {
    return store.query([&](const PersistentVolume::Index& by_path) {
      const auto found = by_path.find_overlapping(path, [](const auto&) { return true; });
      return found ? found->meta.name : "";
    });
  };
  store.put({"", "a"}, volume("a", "/x/a"));
  CHECK(at("/x") == "a");
  store.put({"", "a"}, volume("a", "/y/a"));
  CHECK(at("/x").empty());
  CHECK(at("/y/a/b") == "a");
  store.erase({"", "a"});
  CHECK(at("/y").empty());
  store.put({"", "a"}, volume("a", "/y/a"));
  store.swap({{{"", "b"}, volume("b", "/z")}});
  CHECK(at("/y").empty());
  CHECK(at("/z") == "b");
}
