// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent.h"
#include "agent/texts.h"
#include "agent/work.h"
#include "agent/work_book.h"
#include "base/log.h"
#include "base/strings.h"

// What the agent's threads do.

namespace lpp::agent {

using operation::Progress;
using State = Progress::State;

namespace {

constexpr int kQuickThreads = 2;
/// How often it is told how far a removal is.
constexpr std::chrono::seconds kTellGone{15};

void log_outcome(const operation::Operation& operation, const Progress& progress) {
  if (progress.state == State::kSucceeded) {
    log::info("{} {}: done", to_string(operation.kind), operation.path);
  } else {
    log::warn("{} {}: {}", to_string(operation.kind), operation.path, progress.message);
  }
}

}  // namespace

std::string Agent::at(const std::string& path) const {
  return options_.root == "/" ? path : options_.root + path;
}

void Agent::start() {
  for (int i = 0; i < kQuickThreads; ++i) {
    threads_.emplace_back([this] {
      set_thread_name("quick");
      work_off(&Agent::quick_);
    });
  }
  threads_.emplace_back([this] {
    set_thread_name("removals");
    work_off(&Agent::slow_);
  });
  threads_.emplace_back([this](const std::stop_token& stop) {
    set_thread_name("bases");
    watch_bases(stop);
  });
  threads_.emplace_back([this](const std::stop_token& stop) {
    set_thread_name("sweep");
    sweep_all(stop);
  });
}

void Agent::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [key, entry] : entries_) {
      if (removes(entry->operation.kind)) entry->stop.request_stop();
    }
    to_work_.notify_all();
    to_look_.notify_all();
    to_sweep_.notify_all();
  }
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();
}

/// An order may have been under way for long: through a cut network, or from a controller that
/// leads no more. What was done by it could not be undone.
bool Agent::needs_leave(const Entry& entry) const {
  if (!removes(entry.operation.kind) || entry.cancelling || entry.forgotten) return false;
  return !entry.asked || clock_.now() - *entry.asked > kLeaveIsGood;
}

void Agent::ask(Entry& entry) {
  entry.asking = true;
  changed(entry);
}

void Agent::work_off(Queue Agent::*queue) {
  while (true) {
    EntryPtr entry;
    {
      MutexLock lock(mutex_);
      Queue& mine = this->*queue;
      while (!stopping_ && mine.empty()) to_work_.wait(mutex_);
      if (stopping_) return;
      entry = std::move(mine.front());
      mine.pop_front();
      if (needs_leave(*entry)) {
        entry->active = false;
        ask(*entry);
        continue;
      }
      if (!entry->cancelling && !entry->forgotten) {
        entry->had_begun = std::exchange(entry->begun, true);
        entry->progress = {.state = State::kRunning};
        entry->gone = 0;
        entry->gone_told = clock_.now();
        changed(*entry);
      }
    }
    serve(entry);
  }
}

void Agent::serve(const EntryPtr& entry) {
  const auto is_to_go = [&] { return entry->cancelling || entry->forgotten; };
  bool to_go = false;
  {
    MutexLock lock(mutex_);
    if (entry->foreign) return;
    to_go = is_to_go();
  }
  if (!to_go) {
    auto progress = work_counted(entry);
    if (progress) log_outcome(entry->operation, *progress);
    MutexLock lock(mutex_);
    if (entry->foreign) return;
    const bool has_ended = progress.has_value();
    if (has_ended) {
      entry->progress = *std::move(progress);
      if (!entry->cancelling) changed(*entry);
    }
    to_go = is_to_go();
    if (!to_go) entry->active = false;
    // Its leave had grown old when it was about to begin.
    if (!to_go && !has_ended && !stopping_) ask(*entry);
  }
  if (!to_go) return;
  const auto dropped = drop(entry);
  if (dropped.ok()) return;
  bool is_known = false;
  {
    MutexLock lock(mutex_);
    entry->active = false;
    is_known = std::exchange(entry->stays, true);
    const bool is_waited_for = entry->next.has_value() && !entry->gives_way;
    not_dropped(entry, dropped.error());
    // It acts no more; it stays on record so that nobody ends the removal. Tried again later.
    Progress ending{.state = State::kEnding,
                    .message = entry->removing
                                   ? "called off, but what is left of it, in " +
                                         entry->operation.base_path +
                                         "/.local-path-provisioner, cannot be put back yet: "
                                   : "called off, and whether it had begun cannot be told yet: ",
                    .reason = std::string(kCannotCallOff),
                    .acts_no_more = true};
    ending.message += dropped.error().message;
    if (!entry->removing) ending.directory = operation::Directory::kKept;
    if (entry->cancelling && (is_waited_for || entry->progress != ending)) {
      entry->progress = std::move(ending);
      changed(*entry);
    }
  }
  if (is_known) return;
  log::warn("{} {}: {}", to_string(entry->operation.kind), entry->operation.path,
            dropped.error().message);
}

std::optional<Progress> Agent::work_counted(const EntryPtr& entry) {
  const std::string kind(operation::label_of(entry->operation.kind));
  auto& running = stats_.running.at({kind});
  ++running;
  const TimePoint began = clock_.now();
  auto progress = work_at(entry);
  const char* result = "stopped";
  if (progress) result = progress->state == State::kSucceeded ? "succeeded" : "failed";
  stats_.durations.at({kind, result}).observe(clock_.now() - began);
  --running;
  return progress;
}

/// A large tree takes its time: that it gets on is told now and then.
void Agent::note_gone(const EntryPtr& entry, std::uint64_t gone) {
  {
    MutexLock lock(mutex_);
    const TimePoint now = clock_.now();
    if (now - entry->gone_told < kTellGone) return;
    entry->gone_told = now;
    entry->gone = told_number(gone);
    changed(*entry);
  }
  log::info("{} {}: {} files and directories are gone so far", to_string(entry->operation.kind),
            entry->operation.path, gone);
}

Work Agent::on_record(const Entry& entry, const Progress& progress) {
  MutexLock lock(mutex_);
  // Who began it stays on record, also where this agent does not know whose it is.
  return {.operation = entry.operation,
          .progress = progress,
          .cluster = entry.cluster.empty() ? cluster_ : entry.cluster,
          .serial = entry.serial};
}

std::optional<Progress> Agent::work_at(const EntryPtr& entry) {
  const operation::Operation& operation = entry->operation;  // never changes
  std::stop_token stop;
  bool had_begun = true;
  {
    MutexLock lock(mutex_);
    stop = entry->stop.get_token();
    had_begun = entry->had_begun;
  }
  const std::string base = at(operation.base_path);
  // Before anything is written: where the disk is missing that would be another disk.
  const auto volumes =
      node::Volumes::open(kernel_, base, {.require_mount = operation.require_mount});
  const auto checked = volumes.ok() ? check_disk(operation, *volumes) : volumes.error();
  if (!checked.ok()) {
    Progress progress = failed(operation, checked.error());
    if (operation.kind == operation::Kind::kMake && !had_begun) {
      progress.directory = operation::Directory::kAbsent;
      // No book has it. Should one that is missing now have it after all, that is another's
      // outcome.
      MutexLock lock(mutex_);
      entry->begun = false;
    }
    return progress;
  }
  const auto book = WorkBook::open(kernel_, *volumes);
  if (!book.ok()) return failed(operation, book.error());
  const auto noted = book->put(on_record(*entry, {.state = State::kRunning}));
  // A removal is what makes room on a full disk, and its volume's record tells of it.
  if (!noted.ok() && !(removes(operation.kind) && noted.error().is(ErrorCode::kUnfit))) {
    return failed(operation, noted.error());
  }
  const auto note_disk = [&](const std::string& disk) {
    MutexLock lock(mutex_);
    entry->disk = disk;
  };
  note_disk(*checked);
  const auto may_remove = [&] {
    MutexLock lock(mutex_);
    if (entry->forgotten || needs_leave(*entry)) return false;
    entry->removing = true;
    return true;
  };
  auto done = do_work(*volumes, operation,
                      {.stop = stop,
                       .cluster = cluster(),
                       .may_remove = may_remove,
                       .gone = [&](std::uint64_t gone) { note_gone(entry, gone); }});
  if (!done.ok()) return std::nullopt;
  done->kept.mount = operation.require_mount;
  if (!done->disk.empty() && saw_disk(operation.base_path, done->disk)) {
    MutexLock lock(mutex_);
    look_soon();
  }
  // The first volume makes the records; what cannot be written now is at the next look.
  if (operation.kind == operation::Kind::kMake) {
    if (const auto known = volumes->identities(cluster()); known.ok()) note_disk(known->disk);
    tell_new_disk(operation.base_path);
  }
  if (const auto kept = book->put(on_record(*entry, *done)); !kept.ok()) {
    // After a restart it counts as begun, and is done again, which changes nothing.
    log::warn("the outcome of {} {} is not on the disk: {}", to_string(operation.kind),
              operation.path, kept.error().message);
  }
  return *std::move(done);
}

Result<void> Agent::drop(const EntryPtr& entry) {
  const operation::Operation& operation = entry->operation;
  bool half_done = false;
  bool failed = false;
  bool called_off = false;
  bool nothing_left = false;
  bool gives_way = false;
  std::string book_of;
  {
    MutexLock lock(mutex_);
    if (entry->foreign) return {};
    book_of = entry->disk;
    gives_way = entry->gives_way;
    const Progress& progress = entry->progress;
    called_off = entry->cancelling;
    half_done = called_off && entry->begun && !progress.over();
    // It has put back what it could. On another disk it has not even begun.
    failed = progress.state == State::kFailed && progress.reason != kOtherDisk;
    // The call came too late.
    nothing_left = called_off && operation.kind == operation::Kind::kRemove &&
                   progress.state == State::kSucceeded &&
                   progress.directory == operation::Directory::kRemoved;
  }
  const std::string base = at(operation.base_path);
  if (removes(operation.kind) && (half_done || failed)) {
    const auto mounted =
        node::Volumes::open(kernel_, base, {.require_mount = operation.require_mount});
    const auto back = mounted.ok() ? put_back(entry, *mounted) : mounted.error();
    // Who forgets one that failed has given it up, or begins anew where this has ended; without its
    // disk it had not even begun.
    const bool must = half_done || (called_off && mounted.ok());
    if (!back.ok() && must) return Error(back.error()).wrap("call off");
    if (!back.ok()) {
      log::warn("{} {} has failed, and what is left of it cannot be put back: {}",
                to_string(operation.kind), operation.path, back.error().message);
    }
    nothing_left = called_off && operation.kind == operation::Kind::kRemove && back.ok() &&
                   *back == node::PutBack::kNothing;
  }
  if (nothing_left) {
    log::warn("node {}: {} of {} was called off, and nothing of it is left to be put back",
              operation.node, to_string(operation.kind), operation.path);
  }
  const auto volumes = node::Volumes::open(kernel_, base, {});
  MutexLock books(books_mutex_);
  {
    MutexLock lock(mutex_);
    if (entry->foreign) return {};
  }
  // What is on a disk that is not there is told when it comes back, also if nobody has seen that it
  // was away.
  const bool away = !volumes.ok() && volumes.error().is(ErrorCode::kNotFound);
  if (!away && !volumes.ok()) return Error(volumes.error()).wrap("drop");
  const auto disk = away ? Result<std::string>(volumes.error()) : volumes->identity();
  const auto read = read_books_.find(operation.base_path);
  if (read != read_books_.end() && (!disk.ok() || *disk != read->second)) read_books_.erase(read);
  // What another disk has under this id is other work.
  const bool is_others = disk.ok() && !book_of.empty() && *disk != book_of;
  if (!away && !is_others) {
    LPP_ASSIGN_OR_RETURN(const auto book, WorkBook::open(kernel_, *volumes), "drop");
    LPP_RETURN_IF_ERROR(book.drop(operation), "drop");
    // Nobody else knows of it: what is made instead lies in another place.
    if (gives_way && operation.kind == operation::Kind::kMake && disk.ok() && *disk == book_of) {
      give_up_making(operation, *volumes);
    }
  }
  MutexLock lock(mutex_);
  entries_.erase(key_of(operation.id()));
  if (nothing_left) nothing_left_.push_back(operation);
  if (entry->cancelling) tell_end(operation.id(), entry->serial);
  if (const auto next = std::exchange(entry->next, std::nullopt)) obey(*next);
  return {};
}

void Agent::give_up_making(const operation::Operation& make, const node::Volumes& volumes) {
  const auto place = place_of(make);
  const auto done = place.ok() ? volumes.give_up_making(place->volume_id) : place.error();
  if (done.ok() || done.error().is(ErrorCode::kConflict)) return;
  log::warn("{} {} does not go on, and what is left of it beside the records stays: {}",
            to_string(make.kind), make.path, done.error().message);
}

Result<node::PutBack> Agent::put_back(const EntryPtr& entry, const node::Volumes& volumes) {
  const operation::Operation& operation = entry->operation;
  LPP_ASSIGN_OR_RETURN(const auto place, place_of(operation), "place");
  LPP_RETURN_IF_ERROR(check_disk(operation, volumes), "disk");
  const auto back = volumes.put_back(place.volume_id, place.path, uid_of(operation));
  if (!back.ok()) {
    MutexLock lock(mutex_);
    entry->removing = true;
    return Error(back.error()).wrap("put back");
  }
  if (*back == node::PutBack::kInPlace) {
    log::info("{} {}: what is left is in its place", to_string(operation.kind), operation.path);
  }
  return *back;
}

bool Agent::saw_disk(const std::string& path, const std::string& disk) {
  bool is_new = false;
  bool is_other = false;
  std::string first;
  std::string twin;  // another base path with the same records
  {
    MutexLock lock(mutex_);
    Disk& known = disks_[path];
    if (known.first.empty()) known.first = disk;
    first = known.first;
    is_new = std::exchange(known.last, disk) != disk;
    is_other = is_new && disk != first;
    for (const std::string& other : paths_) {
      const auto it = disks_.find(other);
      if (!is_new || disk.empty() || other == path || it == disks_.end()) continue;
      if (it->second.last == disk) twin = other;
    }
  }
  if (!twin.empty()) {
    log::warn(
        "{} and {} have the same records: they are one directory under two names, or a disk and "
        "its copy; give this node only one of them",
        path, twin);
  }
  if (is_other) {
    log::error(
        "{}: disk {} was there, and now there is {}: until the former one is back only what "
        "names this one is done; if it is meant to be, restart this agent",
        path, first, disk.empty() ? "none" : disk);
  }
  return is_new;
}

/// Whoever waits for the volume compares its disk with the one that was told last.
void Agent::tell_new_disk(const std::string& path) {
  MutexLock lock(mutex_);
  const Base* const known = find_base(bases_, path);
  if (known == nullptr || known->identity.empty()) look_soon();
}

Result<std::string> Agent::check_disk(const operation::Operation& operation,
                                      const node::Volumes& volumes) {
  const auto disk = volumes.identity();
  const bool is_full = !disk.ok() && disk.error().is(ErrorCode::kUnfit);
  // An identity that is there can be read.
  if (!disk.ok() && !(is_full && removes(operation.kind))) return disk.error();
  const std::string there = disk.ok() ? *disk : std::string();
  const bool is_new = saw_disk(operation.base_path, there);
  std::string expected = operation.disk;
  MutexLock lock(mutex_);
  // Not each time: before each look what waits for its disk is tried again.
  if (is_new) look_soon();
  if (expected.empty()) expected = disks_[operation.base_path].first;
  if (expected == there) return there;
  return Error{.code = ErrorCode::kUnavailable,
               .message = words_of_other_disk(operation, expected, there),
               .reason = std::string(kOtherDisk)};
}

}  // namespace lpp::agent
