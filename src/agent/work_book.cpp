// SPDX-License-Identifier: Apache-2.0
#include "agent/work_book.h"

#include <algorithm>

#include "agent/work.h"
#include "base/strings.h"

namespace lpp::agent {

using node::RecordFolder;
using operation::Operation;
using operation::Progress;

namespace {

constexpr std::string_view kPrefix = "work.";
constexpr std::string_view kTemporaryPrefix = "work-write.";
constexpr std::size_t kMostBytesOfWork = 256UL << 10U;

Result<std::string> file_of(const Operation& operation) {
  LPP_ASSIGN_OR_RETURN(const Place place, place_of(operation), "agent");
  return RecordFolder::work_name(place.volume_id, key_of(operation.id()));
}

}  // namespace

std::string key_of(const operation::Id& id) {
  return short_hash(std::string(to_string(id.kind)) + '\n' + id.volume_name + '\n' + id.owner_uid +
                    '\n' + std::to_string(id.attempt));
}

Result<WorkBook> WorkBook::open(node::Kernel& kernel, const node::Volumes& volumes) {
  LPP_ASSIGN_OR_RETURN(UniqueFd folder, volumes.base_folder(), "work book");
  return WorkBook(kernel, std::move(folder));
}

Result<WorkBook::Loaded> WorkBook::load(const Whose& whose) const {
  Loaded loaded;
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), "work book");
  if (!records) return loaded;
  LPP_ASSIGN_OR_RETURN(auto names, node::entries_of(*kernel_, records->fd()), "work book");
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.starts_with(kTemporaryPrefix) && !whose.is_foreign({})) {
      LPP_RETURN_IF_ERROR(records->remove_file(name), "work book");
    }
    if (!name.starts_with(kPrefix)) continue;
    const auto text = records->read_text(name, kMostBytesOfWork);
    if (text.ok() && !*text) continue;
    auto work = text.ok() ? decode_work(**text) : Result<Work>(text.error());
    if (!work.ok()) {
      loaded.problems.push_back(name + ": " + work.error().message);
      continue;
    }
    if (whose.is_foreign(work->cluster)) {
      loaded.foreign.push_back(key_of(work->operation.id()));
      continue;
    }
    const auto file = file_of(work->operation);
    if (!file.ok() || *file != name) {
      loaded.problems.push_back(name + ": it tells of an operation of another name");
    } else if (work->progress.state == Progress::State::kWaiting) {
      LPP_RETURN_IF_ERROR(records->remove_file(name), "work book");
    } else {
      loaded.works.push_back(*std::move(work));
    }
  }
  return loaded;
}

Result<void> WorkBook::put(const Work& work) const {
  LPP_ASSIGN_OR_RETURN(const std::string name, file_of(work.operation), "work book");
  const std::string temporary = std::string(kTemporaryPrefix) + key_of(work.operation.id());
  const auto write = [&](const RecordFolder& records) {
    const std::string text = encode(work);
    auto written = records.put_file(name, temporary, text, false);
    // Who reads the book just now has taken it for what is left of an interrupted writing.
    const bool is_taken = !written.ok() && written.error().is(ErrorCode::kNotFound);
    return is_taken ? records.put_file(name, temporary, text, false) : written;
  };
  if (work.operation.kind == operation::Kind::kMake) {
    LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find_or_make(*kernel_, base_.get()),
                         "work book");
    return write(records);
  }
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), "work book");
  return records ? write(*records) : Result<void>();
}

Result<void> WorkBook::drop(const Operation& operation) const {
  LPP_ASSIGN_OR_RETURN(const std::string name, file_of(operation), "work book");
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), "work book");
  return records ? records->remove_file(name) : Result<void>();
}

}  // namespace lpp::agent
