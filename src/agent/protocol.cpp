// SPDX-License-Identifier: Apache-2.0
#include "agent/protocol.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/work_json.h"
#include "base/json_extent.h"
#include "base/json_members.h"
#include "base/strings.h"
#include "node/volume.h"

namespace lpp::agent {

namespace {

using nlohmann::json;

/// What we write is ten levels deep at most.
constexpr std::size_t kMaxDepth = 32;
constexpr std::array<std::pair<std::string_view, Order::What>, 4> kOrders = {
    {{"start", Order::What::kStart},
     {"cancel", Order::What::kCancel},
     {"forget", Order::What::kForget},
     {"bases", Order::What::kBases}}};

Result<json> parse(std::string_view text) {
  if (text.size() > kMaxMessage) return invalid("a message is too long");
  if (first_json_value(text, kMaxDepth).too_deep_at) return invalid("a message is nested too deep");
  json value = json::parse(text, nullptr, false);
  if (!value.is_object()) return invalid("a message is not a JSON object");
  return value;
}

/// The member's items; none if it is absent.
Result<std::vector<json>> items_of(json& object, const char* name, std::size_t most) {
  const auto it = object.find(name);
  if (it == object.end()) return std::vector<json>{};
  if (!it->is_array()) return invalid(std::string(name) + " must be an array");
  if (it->size() > most) return invalid(std::string(name) + " are too many");
  return std::move(it->get_ref<json::array_t&>());
}

void read_texts(JsonMembers& members, const char* name, std::size_t most,
                std::vector<std::string>& to) {
  members.texts(name, to);
  if (to.size() > most) members.complain(name, "are too many");
}

}  // namespace

// Beside those of works and of what is listed.
static json to_json(const Base& base) {
  json object{{"path", base.path}, {"promised", base.promised_bytes}, {"volumes", base.volumes}};
  if (!base.problem.empty()) object["problem"] = truncate_utf8(base.problem, kMaxWords);
  if (!base.identity.empty()) object["identity"] = base.identity;
  if (!base.seen.empty()) object["seen"] = base.seen;
  if (base.space) object["space"] = to_json(*base.space);
  if (!base.cluster.empty()) object["cluster"] = base.cluster;
  if (base.limits_not_held > 0) object["limitsNotHeld"] = base.limits_not_held;
  if (base.limits_taken_off > 0) object["limitsTakenOff"] = base.limits_taken_off;
  return object;
}

static json to_json(const Order& order) {
  json object{{"number", order.number}, {"do", word_of(kOrders, order.what)}};
  if (!order.serial.empty()) object["serial"] = order.serial;
  switch (order.what) {
    case Order::What::kStart:
      if (order.operation) object["operation"] = to_json(*order.operation);
      break;
    case Order::What::kCancel:
      if (order.operation) object["operation"] = to_json(*order.operation);
      if (order.keep) object["keep"] = true;
      object["id"] = to_json(order.id);
      break;
    case Order::What::kForget: object["id"] = to_json(order.id); break;
    case Order::What::kBases: object["basePaths"] = order.base_paths; break;
  }
  return object;
}

namespace {

Result<Base> read_base(const json& object) {
  if (!object.is_object()) return invalid("a base must be a JSON object");
  Base base;
  JsonMembers members(object);
  members.text("path", base.path, true);
  members.text("problem", base.problem);
  members.text("identity", base.identity);
  members.text("seen", base.seen);
  members.text("cluster", base.cluster);
  members.number<std::int64_t>("promised", base.promised_bytes, 0);
  members.number<std::int64_t>("volumes", base.volumes, 0);
  members.number<std::int64_t>("limitsNotHeld", base.limits_not_held, 0);
  members.number<std::int64_t>("limitsTakenOff", base.limits_taken_off, 0);
  LPP_RETURN_IF_ERROR(whole(members, "base"), "message");
  LPP_ASSIGN_OR_RETURN(base.space, read_space(object), "base");
  cut(base.problem, kMaxWords);
  for (std::string* text : {&base.identity, &base.seen, &base.cluster}) cut(*text, kMaxDisk);
  return base;
}

Result<Order> read_order(const json& object) {
  if (!object.is_object()) return invalid("an order must be a JSON object");
  Order order;
  JsonMembers members(object);
  std::string what;
  members.text("do", what, true);
  read_word(members, "do", kOrders, order.what);
  members.number<std::int64_t>("number", order.number, 1);
  if (order.number == 0) members.complain("number", "is missing");
  members.flag("keep", order.keep);
  members.text("serial", order.serial);
  read_texts(members, "basePaths", kMaxBases, order.base_paths);
  LPP_RETURN_IF_ERROR(whole(members, "order"), "message");
  const bool may_have_one = order.what == Order::What::kCancel && object.contains("operation");
  if (order.what == Order::What::kStart || may_have_one) {
    LPP_ASSIGN_OR_RETURN(order.operation, read_operation(object), "order");
  }
  cut(order.serial, kMaxSerial);
  if (order.what == Order::What::kCancel || order.what == Order::What::kForget) {
    LPP_ASSIGN_OR_RETURN(order.id, read_id(object.value("id", json())), "order");
  }
  return order;
}

/// Reads each item of the member.
template <typename Item>
Result<std::vector<Item>> read_all(json& object, const char* name, std::size_t most,
                                   Result<Item> (*read)(const json&)) {
  LPP_ASSIGN_OR_RETURN(const auto items, items_of(object, name, most), "message");
  std::vector<Item> all;
  all.reserve(items.size());
  for (const json& item : items) {
    LPP_ASSIGN_OR_RETURN(Item one, read(item), name);
    all.push_back(std::move(one));
  }
  return all;
}

/// The same, without those that cannot be read.
template <typename Item>
Result<std::vector<Item>> read_good(json& object, const char* name, std::size_t most,
                                    Result<Item> (*read)(const json&),
                                    std::vector<std::string>& unread) {
  LPP_ASSIGN_OR_RETURN(const auto items, items_of(object, name, most), "message");
  std::vector<Item> all;
  all.reserve(items.size());
  for (const json& item : items) {
    auto one = read(item);
    if (one.ok()) {
      all.push_back(*std::move(one));
    } else {
      unread.push_back(std::string(name) + ": " + one.error().message.substr(0, kMaxWords));
    }
  }
  return all;
}

template <typename Item>
json list_of(const std::vector<Item>& items) {
  json list = json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace

const Base* find_base(const std::vector<Base>& bases, std::string_view path) {
  const auto it =
      std::find_if(bases.begin(), bases.end(), [&](const Base& base) { return base.path == path; });
  return it == bases.end() ? nullptr : &*it;
}

std::string encode(const Hello& hello) {
  return dump({{"protocol", hello.protocol}, {"program", hello.program}});
}

std::string encode(const Welcome& welcome) {
  json object{{"protocol", welcome.protocol},
              {"program", welcome.program},
              {"session", welcome.session},
              {"basePaths", welcome.base_paths}};
  if (!welcome.cluster.empty()) object["cluster"] = welcome.cluster;
  return dump(object);
}

std::string encode(const Tell& tell) {
  json object{{"session", tell.session}};
  if (tell.everything) object["everything"] = true;
  if (!tell.last) object["last"] = false;
  if (tell.bases) object["bases"] = list_of(*tell.bases);
  if (!tell.works.empty()) object["works"] = list_of(tell.works);
  if (!tell.ended.empty()) object["ended"] = list_of(tell.ended);
  if (!tell.nothing_left.empty()) object["nothingLeft"] = list_of(tell.nothing_left);
  if (!tell.asks.empty()) object["asks"] = list_of(tell.asks);
  if (!tell.uses.empty()) object["uses"] = list_of(tell.uses);
  if (tell.inventory) object["inventory"] = to_json(*tell.inventory);
  if (!tell.sweeps.empty()) object["sweeps"] = list_of(tell.sweeps);
  return dump(object);
}

std::string encode(const Told& told) {
  json object = json::object();
  if (!told.begin.empty()) object["begin"] = list_of(told.begin);
  if (!told.sweep.empty()) object["sweep"] = told.sweep;
  return dump(object);
}

std::string encode(const Poll& poll) {
  return dump({{"session", poll.session}, {"taken", poll.taken}});
}

std::string encode(const Orders& orders) { return dump({{"orders", list_of(orders.orders)}}); }

std::string encode(const Work& work) { return dump(to_json(work)); }

Result<Hello> decode_hello(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(const json object, parse(text), "hello");
  Hello hello{.protocol = 1};  // who does not say
  JsonMembers members(object);
  members.number<int>("protocol", hello.protocol, 0);
  members.text("program", hello.program);
  LPP_RETURN_IF_ERROR(whole(members, "hello"), "message");
  cut(hello.program, 64);
  return hello;
}

Result<Welcome> decode_welcome(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(const json object, parse(text), "welcome");
  Welcome welcome{.protocol = 1};
  JsonMembers members(object);
  members.number<int>("protocol", welcome.protocol, 0);
  members.text("program", welcome.program);
  members.text("session", welcome.session, true);
  read_texts(members, "basePaths", kMaxBases, welcome.base_paths);
  members.text("cluster", welcome.cluster);
  LPP_RETURN_IF_ERROR(whole(members, "welcome"), "message");
  if (welcome.cluster.size() > kMaxDisk || !node::is_id(welcome.cluster)) welcome.cluster.clear();
  return welcome;
}

Result<Tell> decode_tell(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(json object, parse(text), "tell");
  Tell tell;
  JsonMembers members(object);
  members.text("session", tell.session, true);
  members.flag("everything", tell.everything);
  members.flag("last", tell.last);
  LPP_RETURN_IF_ERROR(whole(members, "tell"), "message");
  auto& unread = tell.unread;
  if (object.contains("bases")) {
    LPP_ASSIGN_OR_RETURN(tell.bases, read_good<Base>(object, "bases", kMaxBases, read_base, unread),
                         "tell");
  }
  LPP_ASSIGN_OR_RETURN(tell.works, read_good<Work>(object, "works", kMaxWorks, read_work, unread),
                       "tell");
  LPP_ASSIGN_OR_RETURN(tell.ended, read_good<Ended>(object, "ended", kMaxWorks, read_ended, unread),
                       "tell");
  LPP_ASSIGN_OR_RETURN(tell.nothing_left,
                       read_good<operation::Operation>(object, "nothingLeft", kMaxWorks,
                                                       read_bare_operation, unread),
                       "tell");
  LPP_ASSIGN_OR_RETURN(
      tell.asks, read_good<operation::Id>(object, "asks", kMaxWorks, read_id, unread), "tell");
  LPP_ASSIGN_OR_RETURN(tell.uses, read_good<Use>(object, "uses", kMaxUses, read_use, unread),
                       "tell");
  if (const auto it = object.find("inventory"); it != object.end()) {
    LPP_ASSIGN_OR_RETURN(tell.inventory, read_inventory(*it, unread), "tell");
  }
  LPP_ASSIGN_OR_RETURN(
      tell.sweeps, read_good<Listed>(object, "sweeps", kMaxSweeps, read_listed, unread), "tell");
  return tell;
}

Result<Told> decode_told(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(json object, parse(text), "told");
  Told told;
  LPP_ASSIGN_OR_RETURN(told.begin, read_all<operation::Id>(object, "begin", kMaxWorks, read_id),
                       "told");
  JsonMembers members(object);
  read_texts(members, "sweep", kMaxSweeps, told.sweep);
  LPP_RETURN_IF_ERROR(whole(members, "told"), "message");
  return told;
}

Result<Poll> decode_poll(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(const json object, parse(text), "poll");
  Poll poll;
  JsonMembers members(object);
  members.text("session", poll.session, true);
  members.number<std::int64_t>("taken", poll.taken, 0);
  LPP_RETURN_IF_ERROR(whole(members, "poll"), "message");
  return poll;
}

Result<Orders> decode_orders(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(json object, parse(text), "orders");
  Orders orders;
  LPP_ASSIGN_OR_RETURN(orders.orders, read_all<Order>(object, "orders", kMaxOrders, read_order),
                       "orders");
  return orders;
}

Result<Work> decode_work(std::string_view text) {
  LPP_ASSIGN_OR_RETURN(const json object, parse(text), "work");
  return read_work(object);
}

}  // namespace lpp::agent
