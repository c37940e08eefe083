// SPDX-License-Identifier: Apache-2.0
#include "harness/directory_executor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/strings.h"
#include "harness/directory_work.h"
#include "harness/file_text.h"
#include "operation/record.h"

namespace lpp::testing {

using nlohmann::json;
using operation::Admission;
using operation::Directory;
using operation::Id;
using operation::Operation;
using operation::Progress;
using operation::Recorded;
using State = Progress::State;

namespace {

namespace fs = std::filesystem;

constexpr const char* kFaults = "faults";
/// Faults come and go without a word.
constexpr std::chrono::milliseconds kPoll{5};

/// The same for two operations that cannot be on record together.
std::string name_of(const Id& id) {
  return fmt::format("{}-{}-{}.json", static_cast<int>(id.kind), id.attempt, id.volume_name);
}

Result<void> write_durably(const std::string& file, const std::string& text) {
  const std::string fresh = file + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == std::ssize(text) && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (!written || ::rename(fresh.c_str(), file.c_str()) != 0) {
    return Error{.message = file + ": cannot be written"};
  }
  return {};
}

DirectoryExecutor::Faults read_faults(const std::string& records) {
  const json file = json::parse(text_of(records + "/" + kFaults), nullptr, false);
  DirectoryExecutor::Faults faults;
  if (!file.is_object()) return faults;
  file["fail"].get_to(faults.fail);
  file["hold"].get_to(faults.hold);
  file["silent"].get_to(faults.silent);
  return faults;
}

std::string find_in(const std::map<std::string, std::string>& map, operation::Kind kind) {
  const auto it = map.find(std::string(to_string(kind)));
  return it == map.end() ? "" : it->second;
}

}  // namespace

Result<void> DirectoryExecutor::set_faults(const std::string& records, const Faults& faults) {
  fs::create_directories(records);
  const json file = {{"fail", faults.fail}, {"hold", faults.hold}, {"silent", faults.silent}};
  return write_durably(records + "/" + kFaults, file.dump());
}

DirectoryExecutor::DirectoryExecutor(Clock& clock, operation::PathLedger& ledger, Settings settings)
    : clock_(clock),
      ledger_(ledger),
      settings_(std::move(settings)),
      load_(clock, settings_.most_per_node) {
  fs::create_directories(settings_.records);
}

DirectoryExecutor::~DirectoryExecutor() { end(Duration::zero()); }

void DirectoryExecutor::begin(operation::Owner owner) {
  owner_.set(std::move(owner));
  Woken all;
  {
    MutexLock lock(mutex_);
    load();
    for (const auto& [name, entry] : entries_) all.push_back(entry.operation);
  }
  worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  wake(all);
}

void DirectoryExecutor::end(Duration /*limit*/) {
  if (!worker_.joinable()) return;
  worker_.request_stop();
  worker_.join();
  owner_.clear();
  // Another process may go on with what is on file.
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    ledger_.remove(entry.operation);
    (void)load_.ended(*entry.operation, name);
  }
  entries_.clear();
}

void DirectoryExecutor::load() {
  for (const auto& file : fs::directory_iterator(settings_.records)) {
    const std::string name = file.path().filename();
    if (file.path().extension() != ".json" || entries_.contains(name)) continue;
    const json record = json::parse(text_of(file.path()), nullptr, false);
    const bool usable = record.is_object() && record.contains("operation");
    auto operation = operation::decode_operation(usable ? record["operation"].dump() : "");
    if (!operation.ok()) {
      log::warn("record {} is not usable: {}", name, operation.error().message);
      continue;
    }
    Entry entry{.operation = std::make_shared<const Operation>(*std::move(operation)),
                .since = clock_.now(),
                .stage = record["stage"].get<Stage>(),
                .cancelled = record["cancelled"].get<bool>(),
                .directory = record["directory"].get<Directory>(),
                .message = record["message"].get<std::string>()};
    entry.was_begun = entry.stage == Stage::kBegun;
    add(name, std::move(entry));
  }
}

Result<void> DirectoryExecutor::save(const Entries::value_type& item) const {
  const auto& [name, entry] = item;
  LPP_ASSIGN_OR_RETURN(const std::string operation, operation::encode_operation(*entry.operation),
                       "record");
  return write_durably(file_of(name), json{{"operation", json::parse(operation)},
                                           {"stage", entry.stage},
                                           {"cancelled", entry.cancelled},
                                           {"directory", entry.directory},
                                           {"message", entry.message}}
                                          .dump());
}

void DirectoryExecutor::add(const std::string& name, Entry entry) {
  ledger_.add(entry.operation);
  if (!entry.over()) load_.began(*entry.operation, name);
  entries_.emplace(name, std::move(entry));
}

void DirectoryExecutor::drop(Entries::iterator it, Woken& woken) {
  const auto operation = it->second.operation;
  fs::remove(file_of(it->first));
  ledger_.remove(operation);
  woken = load_.ended(*operation, it->first);
  woken.push_back(operation);
  entries_.erase(it);
}

DirectoryExecutor::Entries::iterator DirectoryExecutor::find(const Id& id) {
  const auto it = entries_.find(name_of(id));
  return it != entries_.end() && it->second.operation->id() == id ? it : entries_.end();
}

std::vector<Recorded> DirectoryExecutor::recorded(std::string_view volume_name) {
  std::vector<Recorded> all;
  MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (entry.operation->volume_name != volume_name) continue;
    all.push_back({entry.operation, progress_of(entry)});
  }
  return all;
}

Progress DirectoryExecutor::progress_of(const Entry& entry) const {
  const bool begun = entry.stage == Stage::kBegun;
  Progress progress{.state = begun ? State::kRunning : State::kWaiting};
  if (entry.stage == Stage::kSucceeded) {
    return {.state = State::kSucceeded, .directory = entry.directory};
  }
  if (entry.stage == Stage::kFailed) {
    return {.state = State::kFailed, .message = entry.message, .reason = "WorkFailed"};
  }
  if (entry.cancelled) progress.state = State::kEnding;
  const TimePoint late_at = entry.since + settings_.patience;
  if (clock_.now() < late_at) {
    progress.changes_at = late_at;
    return progress;
  }
  if (!entry.cancelled) progress.state = State::kLate;
  progress.reason = "Timeout";
  progress.message = fmt::format("{} of {} did not {} within {} s: is node {} up?",
                                 to_string(entry.operation->kind), entry.operation->path,
                                 begun || entry.cancelled ? "end" : "begin",
                                 settings_.patience.count(), entry.operation->node);
  return progress;
}

Admission DirectoryExecutor::admit(const Operation& operation) {
  if (!load_.admit(operation)) return {};
  return Admission([this, operation] { wake(load_.give_back(operation)); });
}

Result<operation::Executor::Start> DirectoryExecutor::start(const Operation& operation) {
  const std::string name = name_of(operation.id());
  MutexLock lock(mutex_);
  if (const auto it = entries_.find(name); it != entries_.end()) {
    return it->second.operation->id() == operation.id() ? Start::kRecorded : Start::kOtherFound;
  }
  if (fs::exists(file_of(name))) {
    return Error{.code = ErrorCode::kConflict, .message = file_of(name) + " is not a record"};
  }
  Entry entry{.operation = std::make_shared<const Operation>(operation), .since = clock_.now()};
  LPP_RETURN_IF_ERROR(save({name, entry}), "start");
  add(name, std::move(entry));
  changed_.notify_all();
  return Start::kRecorded;
}

/// A make that is over stays on record: what it has left is to be taken back.
Result<void> DirectoryExecutor::cancel(const Id& id) {
  Woken woken;
  {
    MutexLock lock(mutex_);
    const auto it = find(id);
    if (it == entries_.end()) return {};
    if (!it->second.over()) {
      it->second.cancelled = true;
      LPP_RETURN_IF_ERROR(save(*it), "cancel");
      changed_.notify_all();
    } else if (id.kind != operation::Kind::kMake) {
      drop(it, woken);
    }
  }
  wake(woken);
  return {};
}

Result<bool> DirectoryExecutor::forget(const Id& id, When /*when*/) {
  LPP_RETURN_IF_ERROR(cancel(id), "forget");
  Woken woken;
  bool gone = false;
  {
    MutexLock lock(mutex_);
    const auto it = find(id);
    if (it != entries_.end() && it->second.over()) drop(it, woken);
    gone = find(id) == entries_.end();
  }
  wake(woken);
  return gone;
}

Progress DirectoryExecutor::lost(const Operation& operation) const {
  return {.state = State::kFailed,
          .message = name_of(operation.id()) + " was removed before it ended",
          .reason = "RecordRemoved"};
}

void DirectoryExecutor::node_changed(std::string_view node) {
  Woken there;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      if (entry.operation->node == node) there.push_back(entry.operation);
    }
  }
  wake(there);
}

void DirectoryExecutor::wake(const Woken& operations) {
  for (const auto& operation : operations) owner_.wake(*operation);
}

void DirectoryExecutor::work(const std::stop_token& stop) {
  set_thread_name("directories");
  const std::stop_callback stopped(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  while (!stop.stop_requested()) {
    const Faults faults = read_faults(settings_.records);
    Woken woken;
    {
      MutexLock lock(mutex_);
      if (!stop.stop_requested() && !step(faults, woken)) {
        const bool idle = std::all_of(entries_.begin(), entries_.end(),
                                      [](const auto& item) { return item.second.over(); });
        if (!stop.stop_requested()) {
          clock_.wait_until(changed_, mutex_, idle ? TimePoint::max() : clock_.now() + kPoll);
        }
      }
    }
    wake(woken);
  }
}

bool DirectoryExecutor::step(const Faults& faults, Woken& woken) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!it->second.over() && step(it, faults, woken)) return true;
  }
  return false;
}

bool DirectoryExecutor::step(Entries::iterator it, const Faults& faults, Woken& woken) {
  Entry& entry = it->second;
  const auto operation = entry.operation;
  const auto& silent = faults.silent;
  if (std::find(silent.begin(), silent.end(), operation->node) != silent.end()) return false;
  if (entry.cancelled) {
    drop(it, woken);
    return true;
  }
  woken = {operation};
  const std::string hold = find_in(faults.hold, operation->kind);
  if (entry.stage == Stage::kRecorded) {
    entry.stage = Stage::kBegun;
    return save(*it).ok();
  }
  if (!entry.outcome && hold != "before") {
    if (const auto failure = find_in(faults.fail, operation->kind); !failure.empty()) {
      entry.outcome = Error{.message = failure};
    } else {
      // Nobody waits for the work; nothing but this thread removes what is at work.
      mutex_.unlock();
      auto outcome = work_on_directory(settings_.disks + "/" + operation->node, *operation);
      mutex_.lock();
      entry.outcome = std::move(outcome);
    }
    return true;
  }
  if (!entry.outcome || hold == "after") {
    woken.clear();
    return false;
  }
  finish(entry);
  if (!save(*it).ok()) return false;
  for (const auto& next : load_.ended(*operation, it->first)) woken.push_back(next);
  return true;
}

/// What is done again after a crash cannot tell who made the directory.
void DirectoryExecutor::finish(Entry& entry) const {
  const auto& outcome = *entry.outcome;
  entry.stage = outcome.ok() ? Stage::kSucceeded : Stage::kFailed;
  if (!outcome.ok()) {
    entry.message = outcome.error().message;
    return;
  }
  const bool unclear = entry.was_begun && *outcome == Directory::kFound;
  entry.directory = unclear ? Directory::kUnknown : *outcome;
}

}  // namespace lpp::testing
