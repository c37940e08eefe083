// SPDX-License-Identifier: Apache-2.0
// Whatever an agent may send to the controller, and the controller to an agent: each input is read
// as every kind of message. What can be read is within the protocol's bounds, reads the same again
// when it is sent on, and is never taken for something that removes without saying so.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/http_request.h"
#include "agent/protocol.h"
#include "agent/work.h"
#include "operation/record.h"
#include "property.h"

namespace {

using lpp::fuzz::require;
using namespace lpp::agent;
using lpp::Result;
using lpp::operation::Id;
using lpp::operation::Kind;
using lpp::operation::Operation;

constexpr std::size_t kMaxDisk = 64;
constexpr int kMostAttempts = 1'000'000'000;

/// What it says besides its kind; operations have no comparison of their own.
std::string text_of(const Operation& operation) {
  const auto text = lpp::operation::encode_operation(operation);
  require(text.ok(), "an operation that was read can be written");
  return *text;
}

bool same(const Operation& a, const Operation& b) {
  return a.id() == b.id() && text_of(a) == text_of(b);
}

bool same(const Work& a, const Work& b) {
  return same(a.operation, b.operation) && a.progress == b.progress && a.cluster == b.cluster;
}

bool same(const Order& a, const Order& b) {
  if (a.operation.has_value() != b.operation.has_value()) return false;
  if (a.operation && !same(*a.operation, *b.operation)) return false;
  return a.number == b.number && a.what == b.what && a.id == b.id &&
         (a.what != Order::What::kBases || a.base_paths == b.base_paths);
}

template <typename Item>
bool all_same(const std::vector<Item>& a, const std::vector<Item>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Item& x, const Item& y) { return same(x, y); });
}

void check(const Id& id) {
  require(!id.volume_name.empty() && id.attempt >= 1 && id.attempt <= kMostAttempts,
          "an id names an operation");
}

void check(const Operation& operation) {
  require(operation.path.starts_with('/') && operation.path.find("/../") == std::string::npos,
          "a directory has an absolute and clean path");
  require(!operation.volume_name.empty() && !operation.owner_uid.empty(),
          "an operation has a volume and an owner");
  require(operation.attempt >= 1 && operation.size_bytes >= 0 && operation.limits.inodes >= 0,
          "no number is negative");
  const auto place = place_of(operation);
  if (place.ok()) {
    require(!place->path.empty() && !place->path.starts_with('/'),
            "work is done below the base path only");
  }
}

void check(const Work& work) {
  check(work.operation);
  check(work.operation.id());
  const auto& progress = work.progress;
  require(progress.message.size() <= kMaxWords && progress.reason.size() <= 64,
          "what people are told is bounded");
  require(progress.disk.size() <= kMaxDisk, "the name of a disk is bounded");
  require(progress.kept.bytes >= 0 && progress.kept.inodes >= 0, "no limit is negative");
}

void check(const Base& base) {
  require(!base.path.empty() && base.problem.size() <= kMaxWords &&
              base.identity.size() <= kMaxDisk && base.cluster.size() <= kMaxDisk,
          "what is told of a base path is bounded");
  require(base.promised_bytes >= 0 && base.volumes >= 0, "no sum is negative");
  const auto& space = base.space;
  require(!space || (space->size >= 0 && space->free >= 0 && space->inodes >= 0 &&
                     space->free_inodes >= 0),
          "no space is negative");
}

void check(const Listed& listed) {
  require(!listed.path.empty() && listed.path.size() <= kMaxPath, "a path is bounded");
  require(listed.size >= 0 && listed.since >= 0 && listed.used.value_or(0) >= 0,
          "no number is negative");
}

void check(const Tell& tell) {
  require(!tell.session.empty(), "a tell has a session");
  require(!tell.bases || tell.bases->size() <= kMaxBases, "base paths are bounded");
  require(tell.works.size() <= kMaxWorks && tell.ended.size() <= kMaxWorks &&
              tell.nothing_left.size() <= kMaxWorks && tell.asks.size() <= kMaxWorks,
          "works are bounded");
  require(tell.uses.size() <= kMaxUses && tell.sweeps.size() <= kMaxSweeps,
          "single directories are bounded");
  for (const Base& base : tell.bases.value_or(std::vector<Base>{})) check(base);
  for (const Work& work : tell.works) check(work);
  for (const Ended& ended : tell.ended) check(ended.id);
  for (const Id& id : tell.asks) check(id);
  for (const Operation& operation : tell.nothing_left) check(operation);
  for (const Listed& listed : tell.sweeps) check(listed);
  for (const Use& use : tell.uses) {
    require(!use.path.empty() && use.path.size() <= kMaxPath, "a path is bounded");
  }
  if (tell.inventory) {
    require(tell.inventory->directories.size() <= kMaxListed && tell.inventory->left_out >= 0,
            "an inventory is bounded");
    for (const Listed& listed : tell.inventory->directories) check(listed);
  }
}

void check(const Order& order) {
  require(order.number >= 1, "orders are numbered from one");
  const bool starts = order.what == Order::What::kStart;
  require(!starts || order.operation.has_value(), "what is to begin is said in full");
  if (order.operation) check(*order.operation);
  if (order.what == Order::What::kCancel || order.what == Order::What::kForget) check(order.id);
}

bool same_inventory(const std::optional<InventoryPart>& a, const std::optional<InventoryPart>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->first == b->first && a->last == b->last && a->directories == b->directories &&
         a->left_out == b->left_out;
}

bool same(const Hello& a, const Hello& b) {
  return a.protocol == b.protocol && a.program == b.program;
}
bool same(const Welcome& a, const Welcome& b) {
  return a.protocol == b.protocol && a.program == b.program && a.session == b.session &&
         a.base_paths == b.base_paths && a.cluster == b.cluster;
}
bool same(const Tell& a, const Tell& b) {
  return a.session == b.session && a.everything == b.everything && a.last == b.last &&
         a.bases == b.bases && all_same(a.works, b.works) && a.ended == b.ended &&
         all_same(a.nothing_left, b.nothing_left) && a.asks == b.asks && a.uses == b.uses &&
         same_inventory(a.inventory, b.inventory) && a.sweeps == b.sweeps;
}
bool same(const Told& a, const Told& b) { return a.begin == b.begin && a.sweep == b.sweep; }
bool same(const Poll& a, const Poll& b) { return a.session == b.session && a.taken == b.taken; }
bool same(const Orders& a, const Orders& b) { return all_same(a.orders, b.orders); }

void check(const Hello& hello) {
  require(hello.protocol >= 1 && hello.program.size() <= 64, "a hello is bounded");
}
void check(const Welcome& welcome) {
  require(!welcome.session.empty(), "a welcome has a session");
  require(welcome.base_paths.size() <= kMaxBases, "base paths are bounded");
  require(welcome.cluster.size() <= kMaxDisk, "the name of a cluster is bounded");
}
void check(const Told& told) {
  require(told.begin.size() <= kMaxWorks && told.sweep.size() <= kMaxSweeps,
          "what may go is bounded");
  for (const Id& id : told.begin) check(id);
}
void check(const Poll& poll) {
  require(!poll.session.empty() && poll.taken >= 0, "a poll has a session and a number");
}
void check(const Orders& orders) {
  require(orders.orders.size() <= kMaxOrders, "orders are bounded");
  for (const Order& order : orders.orders) {
    check(order);
    require(order.base_paths.size() <= kMaxBases, "base paths are bounded");
  }
}

template <typename Message>
void play(Result<Message> (*decode)(std::string_view), std::string_view text) {
  const auto read = decode(text);
  if (!read.ok()) {
    require(!read.error().message.empty(), "an error has a message");
    return;
  }
  check(*read);
  const std::string sent = encode(*read);
  const auto again = decode(sent);
  require(again.ok(), "what was sent can be read");
  require(same(*read, *again), "a message reads as it was sent");
  require(encode(*again) == sent, "a message is sent as it was read");
}

/// Members that this version does not know change nothing, wherever they stand.
template <typename Message>
void play_later(Result<Message> (*decode)(std::string_view), std::string_view text) {
  constexpr std::size_t kMost = 8192;  // far from the bounds, which longer ones may reach
  const auto read = decode(text);
  if (!read.ok() || text.size() > kMost) return;
  auto later = nlohmann::json::parse(text, nullptr, false);
  const auto add = [](nlohmann::json& value, const auto& self) -> void {
    if (!value.is_structured()) return;
    for (auto& item : value) self(item, self);
    if (value.is_object()) value["ofALaterVersion"] = {{"kind", "remove"}};
  };
  add(later, add);
  const auto again = decode(later.dump());
  require(!again.ok() || encode(*again) == encode(*read), "unknown members change nothing");
}

template <typename Message>
void play_both(Result<Message> (*decode)(std::string_view), std::string_view text) {
  play(decode, text);
  play_later(decode, text);
}

void play_head(std::string_view text) {
  const auto head = parse_head(text);
  if (!head.ok()) {
    require(head.error().http_status >= 400 && head.error().http_status < 500,
            "what is refused is answered");
    return;
  }
  if (!*head) return;
  require((*head)->size <= text.size() && (*head)->size <= lpp::kMaxHttpHead, "a head is bounded");
  const auto again = parse_head(text.substr(0, (*head)->size));
  require(again.ok() && *again && (*again)->target == (*head)->target &&
              (*again)->token == (*head)->token && (*again)->body == (*head)->body,
          "what follows a head does not change it");
  require((*head)->token.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
          "a token is one line");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = lpp::fuzz::text_of(data, size);
  if (text.starts_with("POST ")) {
    play_head(text);
    return 0;
  }
  play_both<Hello>(decode_hello, text);
  play_both<Welcome>(decode_welcome, text);
  play_both<Tell>(decode_tell, text);
  play_both<Told>(decode_told, text);
  play_both<Poll>(decode_poll, text);
  play_both<Orders>(decode_orders, text);
  play_both<Work>(decode_work, text);
  return 0;
}
