// SPDX-License-Identifier: Apache-2.0
#include "agent/protocol.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "agent/protocol_version.h"
#include "fakes/check_contains.h"
#include "operation/record.h"

namespace lpp::agent {
namespace {

using nlohmann::json;
using operation::Directory;
using operation::Kind;
using operation::Operation;
using State = operation::Progress::State;

Operation make_operation() {
  Operation operation;
  operation.volume_name = "pvc-1";
  operation.claim = {"web", "data"};
  operation.owner_uid = "u-1";
  operation.attempt = 3;
  operation.node = "node-1";
  operation.base_path = "/opt/local-path-provisioner";
  operation.path = "/opt/local-path-provisioner/pvc-1";
  operation.size_bytes = 1024;
  operation.limits = {.hard = true, .inodes = 7, .reserve = "10%", .overcommit = false};
  return operation;
}

Work whole_work() {
  Work work{.operation = make_operation()};
  work.progress.state = State::kFailed;
  work.progress.message = "the disk is full";
  work.progress.reason = "Full";
  work.progress.directory = Directory::kMade;
  work.progress.infeasible = true;
  work.progress.unfit = true;
  work.progress.acts_no_more = true;
  work.progress.kept = {
      .size = true, .bytes = 1024, .inodes = 7, .reserve = true, .overcommit = true, .mount = true};
  work.progress.space = operation::Space{.size = 10, .free = 5, .inodes = 3, .free_inodes = 1};
  return work;
}

void check_same(const Work& a, const Work& b) {
  CHECK(operation::encode_operation(a.operation).value() ==
        operation::encode_operation(b.operation).value());
  CHECK(a.progress == b.progress);
}

TEST_CASE("every message comes back as it was sent") {
  const auto hello = decode_hello(encode(Hello{.protocol = 2, .program = "1.2.3"})).value();
  CHECK(hello.protocol == 2);
  CHECK(hello.program == "1.2.3");

  const auto welcome =
      decode_welcome(encode(Welcome{.program = "1", .session = "s", .base_paths = {"/a", "/b"}}))
          .value();
  CHECK(welcome.session == "s");
  CHECK(welcome.base_paths == std::vector<std::string>{"/a", "/b"});

  const Base base{
      .path = "/a",
      .problem = "it is not mounted",
      .identity = "x",
      .seen = "y",
      .space =
          operation::Space{.size = 1,
                           .filesystem = "8:17",
                           .promises = operation::Promises{.unused = 3, .used = 2, .unlimited = 1}},
      .promised_bytes = 9,
      .volumes = 2,
      .limits_not_held = 2,
      .limits_taken_off = 1};
  const operation::Id id{
      .kind = Kind::kTakeBack, .volume_name = "v", .owner_uid = "u", .attempt = 2};
  const std::vector<Use> uses{
      {.path = "/a/b", .usage = operation::Usage{.bytes = 5, .limit_bytes = 9, .inodes = 0}},
      {.path = "/a/c", .usage = operation::Usage{.limit_inodes = 3}},
      {.path = "/a/d"}};
  const auto tell = decode_tell(encode(Tell{.session = "s",
                                            .everything = true,
                                            .last = false,
                                            .bases = std::vector{base},
                                            .works = {whole_work()},
                                            .ended = {{id, "me-7"}},
                                            .asks = {id},
                                            .uses = uses}))
                        .value();
  CHECK(tell.session == "s");
  CHECK(tell.everything);
  CHECK_FALSE(tell.last);
  CHECK(tell.bases == std::vector{base});
  REQUIRE(tell.works.size() == 1);
  check_same(tell.works[0], whole_work());
  CHECK(tell.ended == std::vector{Ended{id, "me-7"}});
  CHECK(tell.asks == std::vector{id});
  CHECK(tell.uses == uses);
  CHECK(decode_told(encode(Told{.begin = {id}})).value().begin == std::vector{id});
  CHECK(decode_told(encode(Told{})).value().begin.empty());
  CHECK(decode_told(R"({"begin":[{"kind":1}]})").error().is(ErrorCode::kInvalid));

  const auto poll = decode_poll(encode(Poll{.session = "s", .taken = 5})).value();
  CHECK(poll.taken == 5);

  const Orders sent{.orders = {{.number = 1, .operation = make_operation()},
                               {.number = 2, .what = Order::What::kCancel, .id = id},
                               {.number = 3, .what = Order::What::kForget, .id = id},
                               {.number = 4, .what = Order::What::kBases, .base_paths = {"/c"}}}};
  const auto orders = decode_orders(encode(sent)).value().orders;
  REQUIRE(orders.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(orders[i].number == sent.orders[i].number);
    CHECK(orders[i].what == sent.orders[i].what);
    CHECK(orders[i].base_paths == sent.orders[i].base_paths);
  }
  CHECK(operation::encode_operation(*orders[0].operation).value() ==
        operation::encode_operation(make_operation()).value());
  CHECK(orders[1].id == id);
  CHECK(orders[2].id == id);

  check_same(decode_work(encode(whole_work())).value(), whole_work());
}

TEST_CASE("serials come back as they were sent, bounded, and that there is none is told apart") {
  Work work = whole_work();
  CHECK_FALSE(decode_work(encode(work))->serial);
  for (const std::string serial : {"", "me-1"}) {
    work.serial = serial;
    CHECK(decode_work(encode(work))->serial == serial);
    for (const auto what : {Order::What::kStart, Order::What::kCancel}) {
      const Order order{.number = 1,
                        .what = what,
                        .operation = make_operation(),
                        .id = make_operation().id(),
                        .serial = serial};
      CHECK(decode_orders(encode(Orders{{order}}))->orders.at(0).serial == serial);
    }
  }
  work.serial = std::string(100'000, 'a');
  CHECK(decode_work(encode(work))->serial->size() < 1000);
}

TEST_CASE("an inventory, what may be swept and the cluster come back as they were sent") {
  const Listed whole{.path = "/opt/a/pvc-1",
                     .id = "pvc-1",
                     .claim = "web/data",
                     .uid = "u-1",
                     .size = 7,
                     .used = 3,
                     .limit = 7,
                     .state = Listed::State::kRemoving,
                     .since = 1'700'000'000,
                     .cluster = "c-1"};
  const Listed bare{.path = "/opt/a/by hand"};
  const Tell tell{
      .session = "s",
      .bases = std::vector{Base{.path = "/opt/a", .cluster = "c-1"}},
      .inventory =
          InventoryPart{.first = true, .last = true, .directories = {whole, bare}, .left_out = 4},
      .sweeps = {whole}};
  const Tell read = decode_tell(encode(tell)).value();
  REQUIRE(read.inventory.has_value());
  CHECK(read.inventory->first);
  CHECK(read.inventory->last);
  CHECK(read.inventory->left_out == 4);
  CHECK(read.inventory->directories == std::vector{whole, bare});
  CHECK(read.sweeps == std::vector{whole});
  CHECK(*read.bases == *tell.bases);
  CHECK(decode_told(encode(Told{.sweep = {"/opt/a/x"}}))->sweep ==
        std::vector<std::string>{"/opt/a/x"});
  CHECK(decode_welcome(encode(Welcome{.session = "s", .cluster = "c-1"}))->cluster == "c-1");
  Work work = whole_work();
  work.cluster = "c-1";
  CHECK(decode_work(encode(work))->cluster == "c-1");
  // Of a peer that knows nothing of all this.
  CHECK_FALSE(decode_tell(R"({"session":"s"})")->inventory.has_value());
  CHECK(decode_told("{}")->sweep.empty());
  CHECK(decode_welcome(R"({"session":"s","cluster":"../x"})")->cluster.empty());
  CHECK(decode_work(encode(whole_work()))->cluster.empty());
}

TEST_CASE("of an inventory what is not right is left out, and what is too much is refused") {
  const auto with = [](const json& directory) {
    return decode_tell(
        json{{"session", "s"}, {"inventory", {{"directories", {directory}}}}}.dump());
  };
  for (const json& wrong :
       {json{{"path", ""}}, json{{"path", std::string(kMaxPath + 1, 'a')}}, json("text"),
        json{{"path", "/a"}, {"size", -1}}, json{{"path", "/a"}, {"since", -1}},
        json{{"path", "/a"}, {"uid", std::string(65, 'a')}},
        json{{"path", "/a"}, {"claim", std::string(600, 'a')}}}) {
    CAPTURE(wrong.dump().substr(0, 100));
    const auto tell = with(wrong);
    REQUIRE(tell.ok());
    CHECK(tell->inventory->directories.empty());
    CHECK(tell->unread.size() == 1);
  }
  CHECK(with({{"path", "/a"}, {"state", "of a later version"}})->inventory->directories[0].state ==
        Listed::State::kPresent);
  const json many = std::vector<json>(kMaxListed + 1, json{{"path", "/a"}});
  CHECK_FALSE(
      decode_tell(json{{"session", "s"}, {"inventory", {{"directories", many}}}}.dump()).ok());
  const json sweeps = std::vector<json>(kMaxSweeps + 1, json{{"path", "/a"}});
  CHECK_FALSE(decode_tell(json{{"session", "s"}, {"sweeps", sweeps}}.dump()).ok());
  CHECK_FALSE(decode_tell(R"({"session":"s","inventory":7})").ok());
}

TEST_CASE("a peer of another version is understood as far as it goes") {
  json later = json::parse(encode(whole_work()));
  later["progress"]["mood"] = "good";
  later["more"] = json::array({1, 2});
  check_same(decode_work(later.dump()).value(), whole_work());

  const auto tell = decode_tell(R"({"session":"s"})").value();
  CHECK(tell.last);
  CHECK_FALSE(tell.everything);
  CHECK_FALSE(tell.bases);
  CHECK(tell.uses.empty());
  CHECK(decode_orders("{}").value().orders.empty());
  CHECK(decode_hello("{}").value().protocol == 1);
  CHECK(decode_welcome(R"({"session":"s"})").value().protocol == 1);
}

TEST_CASE("two of different versions speak the newest that both know, and too old is refused") {
  // By what the agent speaks at most, what the controller does, and what is the oldest it knows.
  CHECK(spoken_with(1, 1, 1).value() == 1);
  CHECK(spoken_with(2, 1, 1).value() == 1);  // the agent is newer
  CHECK(spoken_with(1, 2, 1).value() == 1);  // the agent is older
  CHECK(spoken_with(3, 3, 2).value() == 3);
  const auto too_old = spoken_with(1, 3, 2);
  REQUIRE_FALSE(too_old.ok());
  CHECK_CONTAINS(too_old.error().message, "the agent speaks version 1 of the protocol");
  CHECK_CONTAINS(too_old.error().message, "this controller 2 at least");

  const auto heard = [](int spoken, int newest, int oldest) {
    const auto checked = check_spoken({.protocol = spoken, .program = "7"}, newest, oldest);
    return checked.ok() ? std::string() : checked.error().message;
  };
  CHECK(heard(1, 1, 1).empty());
  CHECK(heard(1, 2, 1).empty());  // the controller is older
  CHECK(heard(2, 2, 1).empty());
  CHECK_CONTAINS(heard(1, 3, 2), "speaks version 1 of the protocol, this agent 2 to 3");
  CHECK_CONTAINS(heard(1, 3, 2), "update the controller");
  CHECK_CONTAINS(heard(2, 1, 1),
                 "speaks version 2 of the protocol, this agent 1: update the agent");
}

TEST_CASE("what is wrong is named") {
  const auto refused = [](const auto& result) {
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().is(ErrorCode::kInvalid));
    return result.error().message;
  };
  for (const char* text : {"", "[]", "null", "{", "\xff"}) {
    CHECK_CONTAINS(refused(decode_tell(text)), "JSON object");
    CHECK_CONTAINS(refused(decode_work(text)), "JSON object");
  }
  CHECK_CONTAINS(refused(decode_hello(R"({"protocol":"1"})")), "protocol");
  CHECK_CONTAINS(refused(decode_welcome("{}")), "session");
  CHECK_CONTAINS(refused(decode_poll(R"({"session":"s","taken":-1})")), "taken");
  CHECK_CONTAINS(refused(decode_tell(R"({"session":"s","works":{}})")), "works");
  // One of them is left out, and the rest is heard.
  const auto unread = [](const std::string& text) {
    const auto tell = decode_tell(text);
    REQUIRE(tell.ok());
    REQUIRE(tell->unread.size() == 1);
    return tell->unread[0];
  };
  CHECK_CONTAINS(unread(R"({"session":"s","works":[{}]})"), "operation");
  CHECK_CONTAINS(unread(R"({"session":"s","ended":[null]})"), "id");
  CHECK_CONTAINS(unread(R"({"session":"s","bases":[{"path":"/a","space":1}]})"), "space");
  CHECK_CONTAINS(unread(R"({"session":"s","bases":[{"path":"/a","space":{"promises":1}}]})"),
                 "promises");
  CHECK_CONTAINS(unread(R"({"session":"s","uses":[7]})"), "use");
  CHECK_CONTAINS(unread(R"({"session":"s","uses":[{"bytes":7}]})"), "path");
  for (const char* number : {"bytes", "limitBytes", "inodes", "limitInodes"}) {
    for (const char* value : {"-1", "1.5", "\"1\"", "18446744073709551615"}) {
      const std::string text =
          R"({"session":"s","uses":[{"path":"/a",")" + std::string(number) + "\":" + value + "}]}";
      CHECK_CONTAINS(unread(text), number);
    }
  }
  CHECK_CONTAINS(refused(decode_orders(R"({"orders":[{"number":1,"do":"dance"}]})")), "do");
  CHECK_CONTAINS(refused(decode_orders(R"({"orders":[{"number":0,"do":"bases"}]})")), "number");
  CHECK_CONTAINS(refused(decode_orders(R"({"orders":[{"number":1,"do":"cancel"}]})")), "id");
}

TEST_CASE("nesting and attempts without an end are refused") {
  std::string deep = R"({"session":"s","works":[{"operation":)";
  deep += std::string(1'000'000, '[');
  CHECK_FALSE(decode_tell(deep).ok());
  CHECK_FALSE(decode_work(deep).ok());
  Work work = whole_work();
  work.operation.attempt = 2'147'483'647;
  CHECK_FALSE(decode_work(encode(work)).ok());
  CHECK(
      decode_tell(R"({"session":"s","ended":[{"kind":"make","volume":"v","attempt":2147483647}]})")
          .value()
          .ended.empty());
}

TEST_CASE("what is too much is refused or cut") {
  std::string longest = R"({"session":"s"})";
  longest.resize(kMaxMessage, ' ');
  CHECK(decode_tell(longest).ok());
  CHECK_FALSE(decode_tell(longest + ' ').ok());
  json tell{{"session", "s"}, {"ended", json::array()}};
  const json id{{"kind", "make"}, {"volume", "v"}};
  for (std::size_t i = 0; i < kMaxWorks; ++i) tell["ended"].push_back(id);
  CHECK(decode_tell(tell.dump()).ok());
  tell["ended"].push_back(id);
  CHECK_FALSE(decode_tell(tell.dump()).ok());

  json uses{{"session", "s"}, {"uses", json::array()}};
  for (std::size_t i = 0; i < kMaxUses; ++i) uses["uses"].push_back({{"path", "/a"}});
  CHECK(decode_tell(uses.dump()).ok());
  uses["uses"].push_back({{"path", "/a"}});
  CHECK_FALSE(decode_tell(uses.dump()).ok());
  const auto takes_path_of = [&](std::size_t bytes) {
    uses["uses"] = json::array({json{{"path", std::string(bytes, 'x')}}});
    const auto taken = decode_tell(uses.dump());
    return taken.ok() && !taken->uses.empty();
  };
  CHECK(takes_path_of(kMaxPath));
  CHECK_FALSE(takes_path_of(kMaxPath + 1));

  Work work = whole_work();
  work.progress.message = std::string(kMaxWords * 2, 'x');
  CHECK(decode_work(encode(work)).value().progress.message.size() == kMaxWords);
  work.progress.space = operation::Space{.size = 1, .filesystem = std::string(64, 'x')};
  CHECK(decode_work(encode(work)).value().progress.space == work.progress.space);
  work.progress.space->filesystem += 'x';
  CHECK(decode_work(encode(work)).value().progress.space == operation::Space{.size = 1});
}

TEST_CASE("words that are not UTF-8 do not keep a message back") {
  Work work = whole_work();
  work.progress.message = "file \xff\xfe";
  CHECK(decode_work(encode(work)).value().progress.message.starts_with("file "));
}

}  // namespace
}  // namespace lpp::agent
