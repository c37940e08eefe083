// SPDX-License-Identifier: Apache-2.0
#include "devcluster/runtime/keyed_queue.h"

#include <utility>

#include "base/strings.h"

namespace lpp::devcluster {

KeyedQueue::KeyedQueue(Clock& clock, std::string name, std::size_t threads, Handler handler)
    : clock_(clock), name_(std::move(name)), thread_count_(threads), handler_(std::move(handler)) {}

KeyedQueue::~KeyedQueue() { stop(); }

void KeyedQueue::start() {
  for (std::size_t i = 0; i < thread_count_; ++i) threads_.emplace_back([this, i] { run(i); });
}

void KeyedQueue::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  threads_.clear();  // joins
}

void KeyedQueue::add_at(const std::string& key, TimePoint due) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  if (running_.contains(key)) {
    const auto [entry, added] = again_.emplace(key, due);
    if (!added && due < entry->second) entry->second = due;
    return;
  }
  const auto [entry, added] = due_.emplace(key, due);
  if (!added) {
    if (entry->second <= due) return;
    order_.erase({entry->second, key});
    entry->second = due;
  }
  order_.emplace(due, key);
  changed_.notify_one();
}

void KeyedQueue::run(std::size_t index) {
  set_thread_name(name_ + "-" + std::to_string(index));
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (order_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    const auto [due, next] = *order_.begin();
    if (clock_.now() < due) {
      clock_.wait_until(changed_, mutex_, due);
      continue;
    }
    const std::string key = next;
    order_.erase(order_.begin());
    due_.erase(key);
    running_.insert(key);
    if (!order_.empty()) changed_.notify_one();  // this thread is busy now: somebody else looks
    lock.unlock();
    handler_(key);
    lock.lock();
    running_.erase(key);
    if (const auto again = again_.find(key); again != again_.end()) {
      order_.emplace(again->second, key);
      due_.emplace(key, again->second);
      again_.erase(again);
      changed_.notify_one();
    }
  }
}

}  // namespace lpp::devcluster
