// SPDX-License-Identifier: Apache-2.0
#include "k8s/list_reader.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8s/objects.h"
#include "protobuf_message.h"

namespace lpp::k8s {

using lpp::testing::enveloped;
using lpp::testing::Message;
using nlohmann::json;

namespace {

constexpr std::size_t kWhole = 1U << 30U;

struct ReadList {
  bool fed = true;
  json rest;  // null: no list
  std::vector<json> items;
};

/// The chunks end after each `step` bytes, and after `first`.
ReadList read(std::string_view text, std::size_t step = kWhole, std::size_t first = 0,
              std::size_t max_item = ListReader::kMaxItem) {
  ReadList result;
  ListReader reader(
      fields_of<PersistentVolumeClaim>(),
      [&](Value item) { result.items.push_back(to_json(item)); }, max_item);
  for (std::size_t size = first; !text.empty() && result.fed; size = step) {
    const auto chunk = text.substr(0, size);
    text.remove_prefix(chunk.size());
    // A copy of its own: a view that is kept too long is found.
    result.fed = reader.feed(std::string(chunk));
  }
  result.rest = to_json(reader.finish());
  return result;
}

Message sent_claim(const std::string& name, const std::string& label = "l") {
  return Message().message(1, Message().text(1, name).text(6, "7").entry(11, "key", label));
}

std::string protobuf_list() {
  return enveloped("PersistentVolumeClaimList",
                   Message()
                       .message(1, Message().text(1, "").text(2, "99").text(3, "token"))
                       .message(2, sent_claim("a"))
                       .integer(9, 300)
                       .text(10, "of a later version")
                       .message(2, sent_claim("b", std::string(300, 'x'))));
}

std::string json_item(const std::string& name, const std::string& label) {
  return R"({"metadata":{"name":")" + name + R"(","resourceVersion":"7","labels":{"key":")" +
         label + R"("},"managedFields":[{"a":"]}"}]},"other":{"items":["\"}",[]]}})";
}

std::string json_list() {
  return R"( {"kind":"PersistentVolumeClaimList","items":[)" + json_item("a", "l") + " ,\n" +
         json_item("b", std::string(300, 'x')) +
         R"(],"number":12,"text":"]}\\\"","metadata":{"resourceVersion":"99","continue":"token"}} )";
}

void check_is_the_list(const ReadList& list) {
  CHECK(list.fed);
  CHECK(list.rest["metadata"]["resourceVersion"] == "99");
  CHECK(list.rest["metadata"]["continue"] == "token");
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[0]["metadata"] ==
        json{{"name", "a"}, {"resourceVersion", "7"}, {"labels", {{"key", "l"}}}});
  CHECK(list.items[1]["metadata"]["labels"]["key"] == std::string(300, 'x'));
}

}  // namespace

TEST_CASE("a list is read wherever its chunks end, in both formats") {
  for (const std::string& text : {protobuf_list(), json_list()}) {
    check_is_the_list(read(text));
    for (const std::size_t step : {1U, 2U, 3U, 7U, 64U}) check_is_the_list(read(text, step));
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      CAPTURE(cut);
      check_is_the_list(read(text, kWhole, cut));
    }
  }
}

TEST_CASE("a list that ends early is none, wherever that is") {
  for (const std::string& text : {protobuf_list(), json_list()}) {
    // The envelope ends with two empty texts, and a JSON text with blanks, which may be missing.
    const std::size_t needed = text.size() - (text[0] == 'k' ? 4 : 1);
    for (std::size_t size = 0; size < needed; ++size) {
      CAPTURE(size);
      CHECK(read(text.substr(0, size)).rest.is_null());
      CHECK(read(text.substr(0, size), 5).rest.is_null());
    }
  }
}

TEST_CASE("an item is handed out before the next one comes") {
  for (const std::string& text : {protobuf_list(), json_list()}) {
    int items = 0;
    ListReader reader(fields_of<PersistentVolumeClaim>(), [&](Value) { ++items; });
    std::size_t at = 0;
    while (items == 0 && at < text.size()) reader.feed(text.substr(at++, 1));
    CHECK(at < text.size() - 300);
    CHECK(reader.items() == 1);
    CHECK(reader.bytes() == at);
  }
}

TEST_CASE("lists without items, in both formats") {
  for (const std::string text :
       {R"({"metadata":{"resourceVersion":"1"},"items":[]})",
        R"({"metadata":{"resourceVersion":"1"},"items":null})",
        R"({"items":[ ],"metadata":{"resourceVersion":"1"},"\u0069tems":[]})",
        R"({"metadata":{"resourceVersion":"1"}})"}) {
    CAPTURE(text);
    for (const std::size_t step : {std::size_t{1}, kWhole}) {
      CHECK(read(text, step).rest["metadata"]["resourceVersion"] == "1");
    }
  }
  CHECK(read("{}").rest == json::object());
  const auto empty = read(enveloped("NodeList", Message().message(1, Message().text(2, "1"))), 1);
  CHECK(empty.rest["metadata"]["resourceVersion"] == "1");
  CHECK(empty.items.empty());
}

TEST_CASE("what is no list is refused, in both formats") {
  const auto item = Message().message(2, sent_claim("a")).bytes();
  const auto raw = [](const std::string& kind, const std::string& list) {
    return std::string("k8s\0", 4) +
           Message().message(1, Message().text(2, kind)).text(2, list).bytes();
  };
  CHECK_FALSE(read(raw("NodeList", item)).rest.is_null());
  for (const std::string& text : {
           std::string("k8s"),
           std::string("k8s\0", 4),
           std::string("k8t\0", 4),
           enveloped("PersistentVolume", sent_claim("a")),
           std::string("k8s\0", 4) + Message().text(2, item).bytes(),  // of nothing
           raw("NodeList", item) + Message().text(3, "gzip").bytes(),
           raw("NodeList", item) + Message().text(2, item).bytes(),      // two
           raw("NodeList", Message().integer(2, 5).bytes()),             // an item that is a number
           raw("NodeList", Message().text(2, "\xff\xff").bytes()),       // ... that is no message
           raw("NodeList", item.substr(0, item.size() - 1)),             // longer than the list
           raw("NodeList", std::string("\x12\xff\xff\xff\xff\x7f", 6)),  // than there is memory
           raw("NodeList", std::string(11, '\xff')),                     // a tag without end
           raw("NodeList", std::string("\x03", 1)),                      // a group
           raw("NodeList", std::string("\0", 1)),                        // field 0
           std::string("k8s\0\x80\x80", 6),
       }) {
    CAPTURE(text.size());
    for (const std::size_t step : {std::size_t{1}, kWhole}) {
      CHECK(read(text, step).rest.is_null());
    }
  }
  for (const std::string text : {"",
                                 " ",
                                 "[]",
                                 "12",
                                 "\"items\"",
                                 "{",
                                 "}",
                                 "{]",
                                 R"({"items")",
                                 R"({"items":})",
                                 R"({"items":{}})",

                                 R"({"items":[{},]})",
                                 R"({"items":[{} {}]})",
                                 R"({"items":[{"a":]}]})",
                                 R"({"items":[,]})",
                                 R"({"items":[})",
                                 R"({"metadata":{}})"
                                 "x",
                                 R"({"a":1,})",
                                 R"({"a" 1})",
                                 R"({a:1})",
                                 R"({"metadata":{"a"}})",
                                 R"({"a":1 2})",
                                 R"({"items":["a":1]})",
                                 R"({"items":[}})"}) {
    CAPTURE(text);
    for (const std::size_t step : {std::size_t{1}, kWhole}) {
      CHECK(read(text, step).rest.is_null());
    }
  }
  CHECK(read(R"({"items":[)" + std::string(100'000, '[')).rest.is_null());
  CHECK(read(R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}").fed);
}

TEST_CASE("an item that is longer than any object is refused before it is there") {
  const std::string name(2000, 'n');
  const auto list = enveloped("NodeList", Message().message(2, sent_claim(name)));
  const std::string text = R"({"items":[)" + json_item(name, "l");
  for (const std::string& bytes : {list, text}) {
    CHECK(read(bytes, 1, 0, 4000).items.size() == 1);
    ReadList cut = read(bytes.substr(0, 1200), 1, 0, 1000);
    CHECK_FALSE(cut.fed);
    CHECK(cut.items.empty());
  }
  // Of a field that nobody looks at nothing is held.
  CHECK(read(R"({"a":")" + name + R"(","items":[]})", 100, 0, 1000).fed);
}

}  // namespace lpp::k8s
