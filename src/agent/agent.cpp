// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <algorithm>

#include "agent/work.h"
#include "agent/work_book.h"
#include "base/log.h"
#include "operation/reasons.h"

// Orders. agent_telling.cpp has what is told of them, agent_work.cpp what the threads do.

namespace lpp::agent {

using operation::Id;
using operation::Operation;
using operation::Progress;
using State = Progress::State;

Agent::Agent(node::Kernel& kernel, Clock& clock, Options options)
    : kernel_(kernel), clock_(clock), options_(std::move(options)) {}

Agent::~Agent() { stop(); }

void Agent::changed(Entry& entry) {
  entry.version = ++version_;
  to_tell_.notify_all();
}

void Agent::enqueue(const EntryPtr& entry) {
  entry->active = true;
  // What only goes from the record does not wait for the removal of others.
  const bool slow = removes(entry->operation.kind) && !entry->forgotten && !entry->cancelling;
  (slow ? slow_ : quick_).push_back(entry);
  to_work_.notify_all();
}

void Agent::take(const Order& order) {
  MutexLock lock(mutex_);
  obey(order);
}

void Agent::obey(const Order& order) {
  switch (order.what) {
    case Order::What::kStart:
      if (order.operation) start_work(order);
      break;
    case Order::What::kCancel: cancel(order); break;
    case Order::What::kForget: forget(order); break;
    case Order::What::kBases:
      paths_ = order.base_paths;
      look_soon();
      break;
  }
}

bool Agent::is_known(const std::string& base_path) const {
  return std::find(paths_.begin(), paths_.end(), base_path) != paths_.end();
}

void Agent::start_work(const Order& order) {
  const Operation& operation = *order.operation;
  auto& entry = entries_[key_of(operation.id())];
  if (entry != nullptr && comes_after(EntryPtr(entry), order)) return;
  if (entry != nullptr) {
    if (!order.serial.empty()) entry->serial = order.serial;
    // What is over is told again: who orders it does not know.
    if (entry->progress.over()) return changed(*entry);
    if (entry->active) {
      if (entry->cancelling) entry->next = order;
      return;
    }
    // It stays called off until that is done: who orders it does not know that it is not.
    if (entry->cancelling) return changed(*entry);
    entry->asking = false;
    entry->stop = std::stop_source();
    return enqueue(entry);
  }
  entry = std::make_shared<Entry>(Entry{.operation = operation, .serial = order.serial});
  if (auto place = place_of(operation); !place.ok() || !is_known(operation.base_path)) {
    if (place.ok()) {
      place = invalid(operation.base_path + " is not one of the base paths of this node's agent");
    }
    entry->progress = failed(operation, place.error());
    return changed(*entry);
  }
  enqueue(entry);
}

/// Of a make that is called off: true when it has begun, or may have. Then its outcome is told,
/// when there is one, and stays on record until it is to be forgotten.
bool Agent::keep_ended(Entry& entry) {
  const bool waits =
      std::erase_if(quick_, [&](const EntryPtr& one) { return one.get() == &entry; }) > 0;
  if (waits) entry.active = false;
  if (!entry.begun && !entry.active && !entry.progress.over()) return false;
  if (entry.active) return true;  // who works at it tells how it ends
  if (!entry.progress.over()) {
    entry.progress = {.state = State::kFailed,
                      .message = "called off after it had been interrupted",
                      .reason = std::string(operation::kCalledOff)};
  }
  changed(entry);
  return true;
}

void Agent::cancel(const Order& order) {
  const Id& id = order.id;
  auto it = entries_.find(key_of(id));
  if (it != entries_.end() && comes_after(EntryPtr(it->second), order)) return;
  if (it == entries_.end() && order.operation && removes(order.operation->kind) &&
      !foreign_works_.contains(key_of(id))) {
    // It may have begun all the same: not every disk has room for a note of it, or a book, and that
    // of a base path which is not this agent's any more has not been read.
    it = entries_.emplace(key_of(id), std::make_shared<Entry>(Entry{.operation = *order.operation}))
             .first;
    it->second->begun = true;
    it->second->progress = {.state = State::kRunning};
  }
  if (it == entries_.end()) {
    return tell_end(id, order.serial);
  }
  const EntryPtr entry = it->second;
  // What ends is what is called off, whichever order it came with.
  const bool other_order = !order.serial.empty() && order.serial != entry->serial;
  if (other_order) entry->serial = order.serial;
  // Who calls it off may have taken the former word for one about a former order.
  if (other_order && entry->progress.reason == kCannotCallOff) changed(*entry);
  if (order.keep && entry->operation.kind == operation::Kind::kMake && keep_ended(*entry)) return;
  entry->cancelling = true;
  entry->asking = false;
  entry->stop.request_stop();
  // A start that was to come after an earlier call-off is called off with it.
  if (entry->next && entry->next->what == Order::What::kStart) {
    entry->next.reset();
    // Who has ordered it has not heard yet that it cannot be.
    if (entry->progress.reason == kCannotCallOff) changed(*entry);
  }
  if (std::erase(quick_, entry) + std::erase(slow_, entry) > 0) entry->active = false;
  if (entry->active) return;  // who works at it sees it
  if (entry->begun) return enqueue(entry);
  entries_.erase(it);
  tell_end(id, entry->serial);
}

void Agent::tell_end(const Id& id, const std::string& serial) {
  ended_.push_back({.id = id, .serial = serial});
  to_tell_.notify_all();
}

void Agent::forget(const Order& order) {
  const auto it = entries_.find(key_of(order.id));
  if (it == entries_.end() || it->second->active) return;
  const EntryPtr entry = it->second;
  // Another one, that came to light with its disk, has nobody taken note of; nor does anybody know
  // what becomes of one that is not over.
  const bool is_other = are_other_orders(order.serial, entry->serial);
  if (is_other || !entry->progress.over()) return changed(*entry);
  entry->forgotten = true;
  if (entry->begun) return enqueue(entry);
  entries_.erase(it);
}

}  // namespace lpp::agent
