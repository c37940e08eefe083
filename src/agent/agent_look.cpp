// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent.h"
#include "agent/texts.h"
#include "agent/work.h"
#include "agent/work_book.h"
#include "base/log.h"
#include "node/held_limits.h"
#include "node/open_base.h"

// What the agent sees in its base paths, and what of that it sweeps away.

namespace lpp::agent {

using operation::Progress;
using State = Progress::State;

namespace {

/// Between two glances at the disks. By then what a look has found is told, too.
constexpr std::chrono::seconds kGlanceEvery{5};
/// Of what could not go from the records.
constexpr std::chrono::seconds kDropEvery{60};
/// What is known of a node's disks is forgotten when nobody confirms it.
constexpr std::chrono::minutes kTellAgain{5};
/// What somebody needs now may be nobody's later.
constexpr std::chrono::minutes kAskAgain{10};

}  // namespace

std::string Agent::cluster() {
  MutexLock lock(mutex_);
  return cluster_;
}

void Agent::open_bases(const std::vector<std::string>& paths, const std::string& cluster) {
  {
    MutexLock lock(mutex_);
    paths_ = paths;
    // A controller of an earlier version does not say, and is of the same cluster.
    if (!cluster.empty()) cluster_ = cluster;
  }
  look_at_bases();
}

void Agent::look_soon() {
  look_now_ = true;
  to_look_.notify_all();
}

/// False when it is to stop.
bool Agent::wait_to_look(TimePoint until, const std::stop_token& stop) {
  while (!stopping_ && !stop.stop_requested() && !look_now_ && clock_.now() < until) {
    clock_.wait_until(to_look_, mutex_, until);
  }
  return !stopping_ && !stop.stop_requested();
}

bool Agent::is_at_work() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& item) { return item.second->active; });
}

void Agent::drop_again() {
  for (const auto& [key, entry] : entries_) {
    if ((entry->cancelling || entry->forgotten) && !entry->active) enqueue(entry);
  }
}

std::string Agent::glance_at(const std::string& path) {
  const auto volumes = node::Volumes::open(kernel_, at(path), {});
  const auto disk = volumes.ok() ? volumes->identities({}) : volumes.error();
  MutexLock books(books_mutex_);
  const char* const book = read_books_.contains(path) ? "" : "to be read: ";
  return book + (disk.ok() ? disk->disk : disk.error().message);
}

bool Agent::sees_change() {
  std::vector<std::string> paths;
  {
    MutexLock lock(mutex_);
    paths = paths_;
  }
  std::map<std::string, std::string> seen;
  for (const std::string& path : paths) seen[path] = glance_at(path);
  MutexLock lock(mutex_);
  return seen != glances_;
}

void Agent::watch_bases(const std::stop_token& stop) {
  TimePoint drop_at = clock_.now() + kDropEvery;
  while (true) {
    const TimePoint next = clock_.now() + options_.look_every;
    bool looks = false;
    bool has_rested = !options_.at_rest;
    while (!looks) {
      {
        MutexLock lock(mutex_);
        if (!wait_to_look(std::min(next, clock_.now() + kGlanceEvery), stop)) return;
        looks = std::exchange(look_now_, false) || clock_.now() >= next;
        if (!looks && !has_rested && !is_at_work()) {
          has_rested = true;
          lock.unlock();
          options_.at_rest();
          lock.lock();
        }
      }
      looks = looks || sees_change();
      // Also where looks are rare: its disk may be back since it was tried.
      if (!looks && clock_.now() < drop_at) continue;
      MutexLock lock(mutex_);
      drop_again();
      drop_at = clock_.now() + kDropEvery;
    }
    look_at_bases();
  }
}

void Agent::look_at_bases() {
  // What was seen last is what is told.
  MutexLock looks(looks_mutex_);
  std::vector<std::string> paths;
  {
    MutexLock lock(mutex_);
    paths = paths_;
  }
  std::vector<Base> bases;
  bases.reserve(paths.size());
  Sights sights;
  std::map<std::string, std::string> glances;
  for (const std::string& path : paths) {
    glances.try_emplace(path, glance_at(path));
    bases.push_back(look_at(path, sights));
  }
  MutexLock lock(mutex_);
  const auto now = clock_.now();
  if (paths == paths_) {
    glances_ = std::move(glances);
    if (options_.tells_usage) {
      uses_.saw(sights.uses);
    } else {
      for (Listed& one : sights.inventory.directories) one.used.reset();
    }
    choose_leftovers(std::move(sights.inventory.leftovers));
    inventory_.saw(std::move(sights.inventory), now);
    if (has_to_tell()) to_tell_.notify_all();
  }
  const bool same = bases == bases_ && bases_version_ != 0 && now < bases_due_;
  if (paths != paths_ || same) return;
  bases_ = std::move(bases);
  bases_due_ = now + kTellAgain;
  ++bases_version_;
  to_tell_.notify_all();
}

Base Agent::look_at(const std::string& path, Sights& sights) {
  Base base{.path = path};
  auto* const limit_turns = &limit_turns_;  // under the lock that this function is called with
  const auto look = [&]() -> Result<void> {
    if (!path.starts_with('/')) return invalid("a base path is absolute");
    const auto volumes = node::Volumes::open(kernel_, at(path), {});
    if (!volumes.ok() && volumes.error().is(ErrorCode::kNotFound)) {
      return Error{ErrorCode::kNotFound, "not mounted into the agent: " + path + " is not there"};
    }
    if (!volumes.ok()) return volumes.error();
    const std::string ours = cluster();
    LPP_ASSIGN_OR_RETURN(auto known, volumes->identities(ours), "records");
    base.identity = std::move(known.disk);
    saw_disk(path, base.identity);
    const std::string records = std::move(known.cluster);
    const WorkBook::Whose whose{.ours = ours, .records = records};
    if (whose.is_foreign({})) base.cluster = records;
    saw_cluster(path, base.cluster);
    LPP_RETURN_IF_ERROR(read_book(path, *volumes, base.identity, whose), "work book");
    LPP_ASSIGN_OR_RETURN(const auto usage, volumes->usage(&(*limit_turns)[{path, base.identity}]),
                         "usage");
    base.space = space_of(usage.space);
    base.space->promises = promises_told(usage);
    // Sizes are what tenants wrote: a negative number would make the whole base unreadable.
    base.promised_bytes = told_number(usage.promised_bytes);
    base.volumes = told_number(usage.volumes.size());
    base.limits_not_held = told_number(node::limits_not_held(usage).size());
    auto taken_off = node::limits_taken_off(usage);
    base.limits_taken_off = told_number(taken_off.size());
    saw_taken_off(path, std::move(taken_off));
    if (!usage.volumes.empty()) warn_of_open_base(path, *volumes);
    UsageNotes::add(path, usage.volumes, sights.uses);
    LPP_ASSIGN_OR_RETURN(const auto inventory, volumes->inventory(usage, InventoryNotes::kMostBare),
                         "inventory");
    const bool own = !ours.empty() && records == ours;
    InventoryNotes::add({.path = path, .disk = base.identity, .foreign = base.cluster, .own = own},
                        usage, inventory, sights.inventory);
    return {};
  };
  if (const auto looked = look(); !looked.ok()) {
    base = {.path = path, .problem = looked.error().message};
    // For a leader that was not there to see it.
    MutexLock lock(mutex_);
    base.seen = disks_[path].first;
  }
  return base;
}

namespace {

/// A make that the controller let be forgotten, right before this process' predecessor was killed,
/// is still in the book. What it made may be gone since: nobody may publish it on that word.
Result<void> doubt_makes(const node::Volumes& volumes, std::vector<Work>& works) {
  const auto is_made = [](const Work& work) {
    return work.operation.kind == operation::Kind::kMake &&
           work.progress.state == State::kSucceeded;
  };
  if (std::none_of(works.begin(), works.end(), is_made)) return {};
  LPP_ASSIGN_OR_RETURN(const auto there, volumes.list(), "list");
  if (!there.problems.empty()) return {};
  for (Work& work : works) {
    const auto place = place_of(work.operation);
    if (!is_made(work) || !place.ok()) continue;
    const bool has_volume =
        std::any_of(there.volumes.begin(), there.volumes.end(), [&](const node::Volume& volume) {
          return volume.id == place->volume_id && volume.state == node::State::kPresent;
        });
    if (!has_volume) work.progress = {.state = State::kRunning};
  }
  return {};
}

}  // namespace

Result<void> Agent::read_book(const std::string& path, const node::Volumes& volumes,
                              const std::string& identity, const WorkBook::Whose& whose) {
  std::vector<std::string> problems;
  std::size_t foreign = 0;
  {
    MutexLock books(books_mutex_);
    const auto read = read_books_.find(path);
    WorkBook::Loaded loaded;
    const auto left = left_to_others_.find(path);
    const bool may_be_ours = left != left_to_others_.end() && left->second != whose;
    if (read == read_books_.end() || read->second != identity || may_be_ours ||
        may_be_taken_in(path)) {
      LPP_ASSIGN_OR_RETURN(const auto book, WorkBook::open(kernel_, volumes), "open");
      LPP_ASSIGN_OR_RETURN(loaded, book.load(whose), "read");
      LPP_RETURN_IF_ERROR(doubt_makes(volumes, loaded.works), "makes");
      read_books_[path] = identity;
      waiting_works_.erase(path);
      left_to_others_.erase(path);
    }
    problems = std::move(loaded.problems);
    MutexLock lock(mutex_);
    foreign = leave_foreign(path, identity, whose) + loaded.foreign.size();
    if (foreign > 0) left_to_others_[path] = whose;
    foreign_works_.insert(loaded.foreign.begin(), loaded.foreign.end());
    for (Work& work : loaded.works) {
      const std::string key = key_of(work.operation.id());
      foreign_works_.erase(key);
      if (work.operation.base_path != path) {
        problems.push_back(key + ": it is about " + work.operation.path);
        continue;
      }
      auto& entry = entries_[key];
      // What was refused before anything was begun knows nothing of what was begun there before.
      const bool is_refusal = entry != nullptr && entry->progress.over() && !entry->begun &&
                              !entry->active && entry->next == std::nullopt;
      if (entry != nullptr && !is_refusal) {
        const bool is_same = operation::same_work(entry->operation, work.operation) &&
                             (entry->disk.empty() || entry->disk == identity);
        if (is_same) continue;
        waiting_works_[path].insert(key);
        problems.push_back(work.operation.path + ": it is under the number of work on " +
                           entry->operation.path + ", and waits until that has ended");
        continue;
      }
      entry = std::make_shared<Entry>(Entry{.operation = std::move(work.operation),
                                            .progress = std::move(work.progress),
                                            .serial = work.serial.value_or(""),
                                            .disk = identity,
                                            .cluster = std::move(work.cluster),
                                            .from_book = true,
                                            .begun = true});
      if (!entry->progress.over()) entry->progress = {.state = State::kRunning};
      changed(*entry);
    }
  }
  if (foreign > 0) {
    log::warn("{}: {} operations that another cluster has begun are left as they are", path,
              foreign);
  }
  for (const std::string& problem : problems) {
    log::error("on record in {}, and left alone: {}", path, problem);
  }
  return {};
}

bool Agent::may_be_taken_in(const std::string& path) {
  const auto it = waiting_works_.find(path);
  if (it == waiting_works_.end()) return false;
  MutexLock lock(mutex_);
  const auto is_free = [&](const std::string& key)
                           LPP_REQUIRES(mutex_) { return !entries_.contains(key); };
  return std::any_of(it->second.begin(), it->second.end(), is_free);
}

std::size_t Agent::leave_foreign(const std::string& path, const std::string& disk,
                                 const WorkBook::Whose& whose) {
  std::size_t left = 0;
  std::vector<Order> next;
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = *it->second;
    const bool same_disk = entry.disk.empty() || entry.disk == disk;  // a full one has no name yet
    const bool of_book = entry.from_book && same_disk && entry.operation.base_path == path;
    if (!of_book || !whose.is_foreign(entry.cluster)) {
      ++it;
      continue;
    }
    entry.foreign = true;
    entry.stop.request_stop();
    std::erase(quick_, it->second);
    std::erase(slow_, it->second);
    foreign_works_.insert(it->first);
    if (entry.next) next.push_back(*std::move(entry.next));
    it = entries_.erase(it);
    ++left;
  }
  for (const Order& order : next) obey(order);
  return left;
}

void Agent::saw_cluster(const std::string& path, const std::string& foreign) {
  std::string ours;
  {
    MutexLock lock(mutex_);
    if (std::exchange(foreign_[path], foreign) == foreign || foreign.empty()) return;
    ours = cluster_;
  }
  log::warn(
      "{}: its records are those of cluster {}, and this is cluster {}: what that one has begun "
      "there is left as it is",
      path, foreign, ours);
}

void Agent::warn_of_open_base(const std::string& path, const node::Volumes& volumes) {
  const auto base = volumes.base_folder();
  if (!base.ok()) return;
  const auto why = node::why_base_is_open(kernel_, base->get(), path);
  if (!why.ok()) return;
  {
    MutexLock lock(mutex_);
    if (why->empty()) open_bases_.erase(path);
    if (why->empty() || !open_bases_.insert(path).second) return;
  }
  log::warn("{}", *why);
}

void Agent::saw_taken_off(const std::string& path, std::vector<std::string> ids) {
  std::vector<std::string> news;
  {
    MutexLock lock(mutex_);
    auto& known = taken_off_[path];
    std::set_difference(ids.begin(), ids.end(), known.begin(), known.end(),
                        std::back_inserter(news));
    known = std::move(ids);
  }
  if (news.empty()) return;
  constexpr std::size_t kMostNamed = 10;
  const std::size_t more = news.size() - std::min(news.size(), kMostNamed);
  news.resize(news.size() - more);
  log::warn(
      "{}: the limits of {}{} hold no more: its owner has taken the directory out of its project, "
      "or another one is in its place",
      path, fmt::join(news, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

std::set<std::pair<std::string, std::string>> Agent::at_work() const {
  std::set<std::pair<std::string, std::string>> busy;
  for (const auto& [key, entry] : entries_) {
    const auto& operation = entry->operation;
    const auto place = place_of(operation);
    if (place.ok()) busy.emplace(operation.base_path, place->volume_id);
  }
  return busy;
}

/// A page with each look, of those about which nobody was asked for the longest time: however many
/// are somebody's, they hide none behind them.
void Agent::choose_leftovers(std::vector<InventoryNotes::Seen::Leftover> seen) {
  const TimePoint now = clock_.now();
  const auto busy = at_work();
  Times lost;
  Times asked;
  std::multimap<std::optional<TimePoint>, Leftover> due;  // by when they were asked about
  for (auto& one : seen) {
    if (options_.sweep_after <= Duration::zero()) break;
    if (one.listed.since == 0) continue;  // nobody can tell
    const auto since = std::chrono::system_clock::from_time_t(one.listed.since);
    if (clock_.wall_now() - since < options_.sweep_after) continue;
    Leftover leftover{.base_path = std::move(one.base_path),
                      .disk = std::move(one.disk),
                      .listed = std::move(one.listed),
                      .lost = one.lost};
    const auto place = leftover.place();
    if (leftover.lost) {
      // When the directory went nobody has written down.
      const auto noticed = lost_since_.find(place);
      const TimePoint from = noticed == lost_since_.end() ? now : noticed->second;
      lost.emplace(place, from);
      if (now - from < options_.sweep_after) continue;
    }
    const auto last = sweep_asked_.find(place);
    const bool was_asked = last != sweep_asked_.end();
    if (was_asked) asked.insert(*last);
    // Who is new was not asked.
    if (was_asked && last->second >= session_began_ && now - last->second < kAskAgain) continue;
    if (busy.contains({leftover.base_path, leftover.listed.id})) continue;
    due.emplace(was_asked ? std::optional(last->second) : std::nullopt, std::move(leftover));
    if (due.size() > kMaxSweeps) due.erase(std::prev(due.end()));
  }
  leftovers_.clear();
  for (auto& [when, leftover] : due) leftovers_.push_back(std::move(leftover));
  leftovers_news_ = !leftovers_.empty();
  lost_since_ = std::move(lost);
  sweep_asked_ = std::move(asked);
}

void Agent::sweep_all(const std::stop_token& stop) {
  while (true) {
    Leftover next;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && to_go_.empty()) to_sweep_.wait(mutex_);
      if (stopping_) return;
      next = std::move(to_go_.front());
      to_go_.pop_front();
      if (at_work().contains({next.base_path, next.listed.id})) continue;
      if (clock_.now() - next.asked > kLeaveIsGood) {
        sweep_asked_.erase(next.place());  // is asked again
        continue;
      }
    }
    sweep(next, stop);
  }
}

void Agent::sweep(const Leftover& leftover, const std::stop_token& stop) {
  const std::string& base_path = leftover.base_path;
  const Listed& listed = leftover.listed;
  const auto done = [&]() -> Result<bool> {
    LPP_ASSIGN_OR_RETURN(const auto volumes, node::Volumes::open(kernel_, at(base_path), {}),
                         "sweep");
    // Another disk may be mounted there by now.
    const std::string ours = cluster();
    LPP_ASSIGN_OR_RETURN(const auto known, volumes.identities({}), "sweep");
    if (ours.empty() || known.cluster != ours || known.disk != leftover.disk) return false;
    return volumes.sweep(listed.id, stop);
  }();
  const char* what = "was being removed";
  if (listed.state == Listed::State::kMaking) what = "was never put into its place";
  if (leftover.lost) what = "has a record only, and no directory any more";
  if (!done.ok() && !done.error().is(ErrorCode::kCancelled) &&
      !done.error().is(ErrorCode::kConflict)) {
    log::warn("{}: it {} and nobody needs it, but: {}", listed.path, what, done.error().message);
  } else if (done.ok() && *done) {
    log::info("{}: it {}, and nobody needed it: it is gone", listed.path, what);
  }
}

}  // namespace lpp::agent
