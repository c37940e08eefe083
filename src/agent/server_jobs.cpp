// SPDX-License-Identifier: Apache-2.0
#include "agent/server_jobs.h"

#include <sys/eventfd.h>

#include <utility>

#include "base/strings.h"

namespace lpp::agent {

Mailbox::Mailbox() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Mailbox::post(Task task) {
  {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > 1) return;  // it was told already
  }
  (void)::eventfd_write(event_.get(), 1);
}

std::vector<Mailbox::Task> Mailbox::take() {
  MutexLock lock(mutex_);
  if (tasks_.empty()) return {};
  eventfd_t count = 0;
  (void)::eventfd_read(event_.get(), &count);
  return std::exchange(tasks_, {});
}

Jobs::Jobs(const std::string& name, std::size_t threads, std::size_t most) : most_(most) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      set_thread_name(name);
      run();
    });
  }
}

bool Jobs::add(std::function<void()> job) {
  MutexLock lock(mutex_);
  if (stopped_) return true;
  if (jobs_.size() >= most_) return false;
  jobs_.push_back(std::move(job));
  changed_.notify_one();
  return true;
}

void Jobs::stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    jobs_.clear();
    changed_.notify_all();
  }
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Jobs::run() {
  for (;;) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !stopped_) changed_.wait(mutex_);
      if (stopped_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace lpp::agent
