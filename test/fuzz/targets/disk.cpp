// SPDX-License-Identifier: Apache-2.0
// What an agent finds among the records of a disk that others have had: the first line of an input
// is the name of a file there, the rest is what it holds. Nothing but the agent's own temporary
// files and works that were never begun goes, nobody's identity is taken away, and what another
// cluster has ordered is left alone.

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "agent/work.h"
#include "agent/work_book.h"
#include "harness/temp_dir.h"
#include "node/record_folder.h"
#include "property.h"

namespace {

using lpp::fuzz::require;
using lpp::node::RecordFolder;
using State = lpp::operation::Progress::State;

struct Disk {
  Disk() {
    base = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(RecordFolder::find_or_make(kernel, base).ok(), "there is a folder for records");
  }
  std::string path(const std::string& name) const {
    return folder.path(std::string(lpp::node::kRecordFolder) + "/" + name);
  }
  void empty() const {
    for (const auto& entry : std::filesystem::directory_iterator(path(""))) {
      std::filesystem::remove_all(entry.path());
    }
  }
  std::optional<std::string> read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  lpp::testing::TempDir folder;
  lpp::node::Kernel kernel;
  int base = -1;
};

bool is_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

/// The work of such a text, as far as there is one.
std::optional<lpp::agent::Work> work_of(const std::string& text) {
  auto work = lpp::agent::decode_work(text);
  return work.ok() ? std::optional(*std::move(work)) : std::nullopt;
}

/// A work counts under the name of its operation only.
bool is_name_of(const lpp::agent::Work& work, const std::string& name) {
  const auto place = lpp::agent::place_of(work.operation);
  return place.ok() &&
         name == RecordFolder::work_name(place->volume_id, lpp::agent::key_of(work.operation.id()));
}

void read_works(Disk& disk, const std::string& name, const std::string& text,
                const lpp::agent::WorkBook::Whose& whose) {
  const auto volumes = lpp::node::Volumes::open(disk.kernel, disk.folder.path(), {});
  require(volumes.ok(), "a base path can be opened");
  const auto book = lpp::agent::WorkBook::open(disk.kernel, *volumes);
  require(book.ok(), "a work book can be opened");
  const auto loaded = book->load(whose);
  require(loaded.ok(), "one file does not hide the others");
  require(loaded->works.size() + loaded->problems.size() + loaded->foreign.size() <= 1,
          "one file is one work");
  const auto work = work_of(text);
  for (const auto& one : loaded->works) {
    require(is_name_of(one, name), "a work has the name of its operation");
    require(one.progress.state != State::kWaiting, "what was never begun does not go on");
    require(!whose.is_foreign(one.cluster), "what another cluster has ordered does not go on");
  }
  const bool foreign = whose.is_foreign(work ? work->cluster : "");
  const bool temporary = name.starts_with("work-write.") && !foreign;
  const bool unbegun =
      work && !foreign && work->progress.state == State::kWaiting && is_name_of(*work, name);
  if (!temporary && !unbegun) require(disk.read(name) == text, "what is not ours to drop stays");
}

void read_identity(Disk& disk, const std::string& text) {
  const auto records = RecordFolder::find(disk.kernel, disk.base);
  require(records.ok() && records->has_value(), "records are found");
  const auto had = nlohmann::json::parse(text, nullptr, false);
  const auto read = (*records)->identity();
  const auto both = (*records)->identities("ours");
  if (!read.ok()) {
    require(!both.ok(), "who has no identity has no cluster");
    require(disk.read("identity.json") == text, "what cannot be read is not written over");
    return;
  }
  require(lpp::node::is_id(*read) && read->size() <= 64, "an identity is one");
  require(had.is_object() && had.value("disk", "") == *read, "a disk keeps its identity");
  if (!both.ok() || both->cluster.empty()) {
    require(disk.read("identity.json") == text, "what has no room for more stays as it is");
    return;
  }
  const std::string theirs = had.value("cluster", "");
  require(both->disk == *read, "disk and cluster are told at once");
  require(both->cluster == (theirs.empty() ? "ours" : theirs), "records stay with their cluster");
  require((*records)->identities("another").value().cluster == both->cluster,
          "a cluster is written down once");
  require((*records)->identity().value() == *read, "an identity reads the same again");
  auto now = nlohmann::json::parse(disk.read("identity.json").value_or(""), nullptr, false);
  require(now.is_object(), "an identity is written whole");
  if (theirs.empty()) now.erase("cluster");
  require(now == had, "what stands beside an identity stays");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Disk disk;
  auto rest = lpp::fuzz::text_of(data, size);
  const std::string name(lpp::fuzz::take_line(rest));
  const std::string text(rest);
  // Folders of the records that are no files, and the lock, are not what this is about.
  if (!is_name(name) || name == "lock" || name == "spare") return 0;
  disk.empty();
  std::ofstream(disk.path(name), std::ios::binary) << text;
  const auto records = RecordFolder::find(disk.kernel, disk.base);
  require(records.ok() && records->has_value(), "records are found");
  require((*records)->names().ok(), "whatever lies there, names can be read");
  if (name == "identity.json") {
    read_identity(disk, text);
    return 0;
  }
  for (const lpp::agent::WorkBook::Whose& whose :
       {lpp::agent::WorkBook::Whose{.ours = "ours", .records = "theirs"},
        lpp::agent::WorkBook::Whose{.ours = "ours"}, lpp::agent::WorkBook::Whose{}}) {
    std::ofstream(disk.path(name), std::ios::binary) << text;
    read_works(disk, name, text, whose);
  }
  return 0;
}
