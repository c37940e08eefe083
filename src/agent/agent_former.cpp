// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent.h"
#include "agent/work.h"

// What is on record under the id of what is ordered now: ids repeat.

namespace lpp::agent {

using operation::Operation;
using operation::Progress;
using State = Progress::State;

/// Ids repeat once all is forgotten. The outcome of a former one, that is to be forgotten or that
/// this process does not know to be, is none of what is ordered now: its record goes first. So does
/// that of what was ordered, over or not, when the node had another name: nobody hears of it.
bool Agent::comes_after(const EntryPtr& former, const Order& order) {
  const bool is_of_other_node = order.operation && order.operation->node != former->operation.node;
  const bool is_other_work = order.what == Order::What::kStart && !is_of_other_node &&
                             !operation::same_work(*order.operation, former->operation);
  const bool is_other = is_other_work || (!order.serial.empty() && order.serial != former->serial);
  if (former->gives_way) {
    former->next = order;
    return true;
  }
  if (is_other_work && !former->progress.over()) {
    give_way(former, order);
    return true;
  }
  if (!is_of_other_node) {
    if (!former->progress.over() || (!former->forgotten && !is_other)) return false;
  }
  if (!former->active && !former->begun) {
    entries_.erase(key_of(former->operation.id()));
    obey(order);
    return true;
  }
  if (is_of_other_node && takes_over(former, order)) return true;
  former->next = order;
  former->forgotten = true;
  former->asking = false;
  if (!former->active) enqueue(former);
  return true;
}

/// Another leader has ordered other work under the same id, as in another base path: what has begun
/// is none of that. It is called off, so that what a removal has left is in its place again before
/// anything else is done there.
void Agent::give_way(const EntryPtr& former, const Order& order) {
  if (std::erase(quick_, former) + std::erase(slow_, former) > 0) former->active = false;
  if (!former->active && !former->begun) {
    entries_.erase(key_of(former->operation.id()));
    return obey(order);
  }
  former->gives_way = true;
  former->next = order;
  former->cancelling = true;
  former->asking = false;
  former->stop.request_stop();
  if (!former->active) enqueue(former);
}

/// What is done again in the same place needs no gap in which nothing is on record.
bool Agent::takes_over(const EntryPtr& former, const Order& order) {
  const Operation& now = *order.operation;
  const Operation& before = former->operation;
  const bool calls_off = order.what == Order::What::kCancel && !former->progress.over();
  if ((order.what != Order::What::kStart && !calls_off) || former->active ||
      now.path != before.path || now.base_path != before.base_path || !is_known(now.base_path)) {
    return false;
  }
  auto& entry = entries_[key_of(now.id())];
  entry = std::make_shared<Entry>(Entry{.operation = now,
                                        .progress = {.state = State::kRunning},
                                        .serial = order.serial,
                                        .disk = former->disk,
                                        .cluster = former->cluster,
                                        .from_book = former->from_book,
                                        .begun = true});
  if (calls_off) {
    obey(order);
  } else {
    enqueue(entry);
  }
  return true;
}

/// A record that cannot go, as on a disk that is read-only, must let nobody wait for what was
/// ordered under its id.
void Agent::not_dropped(const EntryPtr& former, const Error& error) {
  // What has not been put back is tried again, and what is ordered then is begun then.
  if (former->gives_way && former->next && former->next->what == Order::What::kStart) return;
  const auto next = std::exchange(former->next, std::nullopt);
  if (!next || (former->cancelling && !former->gives_way)) return;
  if (next->what != Order::What::kStart) {
    return tell_end(next->id, next->serial);
  }
  auto& entry = entries_[key_of(former->operation.id())];
  entry = std::make_shared<Entry>(Entry{
      .operation = *next->operation,
      .progress = {.state = State::kFailed, .message = error.message, .reason = "RecordStays"},
      .serial = next->serial,
      .disk = former->disk,
      .cluster = former->cluster,
      .begun = true});
  changed(*entry);
}

}  // namespace lpp::agent
