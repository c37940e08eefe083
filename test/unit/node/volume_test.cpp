// SPDX-License-Identifier: Apache-2.0
#include "node/volume.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace lpp::node;

namespace {

Volume example() {
  return {.id = "pvc-1",
          .path = "web/data/pvc-1",
          .claim = "web/data",
          .uid = "0b4c",
          .origin = Origin::kFound,
          .state = State::kRemoving,
          .project = 0x40000001,
          .limits = {.bytes = UINT64_MAX, .inodes = 1000},
          .directory = {.inode = UINT64_MAX, .born_ns = -5, .generation = UINT32_MAX}};
}

}  // namespace

TEST_CASE("a record comes back as it was written") {
  const auto same = [](const Volume& volume) {
    const auto read = decode_record(encode_record(volume));
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(read->id == volume.id);
    CHECK(read->path == volume.path);
    CHECK(read->claim == volume.claim);
    CHECK(read->uid == volume.uid);
    CHECK(read->origin == volume.origin);
    CHECK(read->state == volume.state);
    CHECK(read->project == volume.project);
    CHECK(read->limits == volume.limits);
    CHECK(read->size == volume.size);
    CHECK(read->directory == volume.directory);
  };
  same(example());
  Volume odd = example();
  odd.size = UINT64_MAX;
  odd.path = "\xff\xc3\x28\n\"\\/\xe2\x82\xac";
  odd.state = State::kMaking;
  odd.origin = Origin::kMade;
  same(odd);
}

TEST_CASE("a record of an earlier version can be read") {
  auto record = nlohmann::json::parse(encode_record(example()));
  record.erase("generation");
  record.erase("size");
  const auto read = decode_record(record.dump());
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  CHECK(read->size == 0);
  CHECK(read->directory == example().directory);
  record["generation"] = std::uint64_t{1} << 32U;
  CHECK_FALSE(decode_record(record.dump()).ok());
}

TEST_CASE("a record that is cut, of another kind or version is refused with its reason") {
  const std::string good = encode_record(example());
  for (std::size_t size = 0; size + 2 < good.size(); ++size) {
    CHECK_FALSE(decode_record(good.substr(0, size)).ok());
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return decode_record(text.replace(at, from.size(), to));
  };
  CHECK(changed("\"version\":1", "\"version\":2").error().message.find("version") !=
        std::string::npos);
  CHECK(changed("web/data/pvc-1", "../data").error().message.find("\"path\"") != std::string::npos);
  CHECK(changed("pvc-1\"", "../x\"").error().message.find("\"id\"") != std::string::npos);
  CHECK_FALSE(changed("\"found\"", "\"lost\"").ok());
  CHECK_FALSE(changed("\"removing\"", "1").ok());
  CHECK_FALSE(changed("1073741825", "4294967296").ok());
  CHECK_FALSE(changed("1073741825", "-1").ok());
  CHECK_FALSE(changed("\"-5\"", "\"-5x\"").ok());
  CHECK_FALSE(decode_record(std::string(100000, '[')).ok());
  CHECK_FALSE(decode_record("[]").ok());
}

TEST_CASE("what is read of a record does not depend on how it is written") {
  const auto told = [](const std::string& text) {
    const auto read = decode_record(text);
    return read.ok() ? encode_record(*read) : read.error().message;
  };
  // A blank in front is nothing that we write.
  const auto same = [&](const std::string& text) { CHECK(told(text) == told(" " + text)); };
  const std::string good = encode_record(example());
  same(good);
  same("{}");
  same("{\"version\":1,\"version\":2," + good.substr(1));
  same("{\"version\":2," + good.substr(1));
  same("{\"more\":[{}]," + good.substr(1));
  same("{\"size\":1e3," + good.substr(1, good.size() - 3) + ",\"size\":18446744073709551616}");
  constexpr std::string_view kBytes("\"\\{}[],:0-.eft \n\0\x1f~\x7f\x80\xc3\xff", 22);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string text = good;
    same(text.erase(at, 1));
    for (const char byte : kBytes) {
      text = good;
      text[at] = byte;
      same(text);
      same(good.substr(0, at) + byte + good.substr(at));
    }
  }
}

TEST_CASE("ids are plain names, and paths stay below the base folder") {
  for (const char* id : {"a", "pvc-0b4c", "A.b_c-1"}) CHECK(is_id(id));
  for (const char* id : {"", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "\xc3\xa4"}) {
    CHECK_FALSE(is_id(id));
  }
  CHECK(is_id(std::string(200, 'a')));
  CHECK_FALSE(is_id(std::string(201, 'a')));

  for (const char* path : {"a", "a/b/c", "a b", "...", ".a", "a/.local-path-provisioner"}) {
    CHECK(is_path(path));
  }
  for (const char* path : {"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b",
                           ".local-path-provisioner", ".local-path-provisioner/volume.a.json"}) {
    CHECK_FALSE(is_path(path));
  }
  CHECK_FALSE(is_path(std::string("a\0b", 3)));
  CHECK(is_path(std::string(255, 'a')));
  CHECK_FALSE(is_path(std::string(256, 'a')));
}

TEST_CASE("a record that does not tell counts as shown to a tenant") {
  Volume volume = example();
  volume.published = false;
  auto record = nlohmann::json::parse(encode_record(volume));
  CHECK_FALSE(decode_record(record.dump())->published);
  record["published"] = "no";
  CHECK(decode_record(record.dump()).error().message.find("published") != std::string::npos);
  record.erase("published");
  CHECK(decode_record(record.dump())->published);
}

TEST_CASE("a volume without a name of its own has one of its path") {
  CHECK(id_of_path("pvc-1_web_data") == "pvc-1_web_data");
  const std::string made = id_of_path("web/data");
  CHECK(is_id(made));
  CHECK(made.starts_with("path-"));
  CHECK(id_of_path("web/data") == made);
  CHECK(id_of_path("web/data2") != made);
  CHECK(is_id(id_of_path(std::string(255, 'x'))));
}
