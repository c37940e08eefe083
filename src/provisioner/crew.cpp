// SPDX-License-Identifier: Apache-2.0
#include "provisioner/crew.h"

#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::provisioner {

Crew::Crew(std::string name, std::size_t most, std::function<void()> run)
    : name_(std::move(name)), most_(most), run_(std::move(run)) {}

void Crew::start() {
  MutexLock lock(mutex_);
  add_thread();
}

void Crew::join() {
  std::vector<std::jthread> threads;
  {
    MutexLock lock(mutex_);
    joined_ = true;
    threads.swap(threads_);
  }
  threads.clear();  // outside the lock, which they need to come to their end
}

std::size_t Crew::size() const {
  MutexLock lock(mutex_);
  return threads_.size();
}

void Crew::begin() {
  std::string trouble;
  {
    MutexLock lock(mutex_);
    ++busy_;
    if (joined_ || busy_ < threads_.size() || threads_.size() >= most_) return;
    try {
      add_thread();
      return;
    } catch (const std::system_error& error) {
      trouble = error.what();
    }
  }
  // A limit of the container: those that are there go on.
  log::warn("no further thread {}: {}", name_, trouble);
}

void Crew::end() {
  MutexLock lock(mutex_);
  --busy_;
}

void Crew::add_thread() {
  threads_.emplace_back([this, number = threads_.size()] {
    set_thread_name(name_ + std::to_string(number));
    run_();
  });
}

}  // namespace lpp::provisioner
