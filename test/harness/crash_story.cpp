// SPDX-License-Identifier: Apache-2.0
#include "harness/crash_story.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/file_text.h"
#include "harness/objects.h"

namespace lpp::testing {

namespace {

using std::chrono::milliseconds;
using Moment = KillSwitch::Moment;

constexpr std::size_t kBystanders = 2;
Result<void> write_file(const std::string& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary);
  out << content;
  out.close();
  if (!out) return Error{.message = file + ": cannot be written"};
  return {};
}

const char* name_of(Moment moment) { return moment == Moment::kBefore ? "before" : "after"; }

/// Calls that count for a kill at that point: all of them when nobody is to be killed.
bool counts(const CallPoint& point, const ApiRequest& request) {
  return point.number == 0 || request.kind() == point.kind;
}

}  // namespace

CrashStory::CrashStory(Installation& installation, std::string ns,
                       std::function<void(std::string)> say)
    : installation_(installation),
      bed_(installation.bed()),
      audit_(bed_),
      ns_(std::move(ns)),
      say_(std::move(say)) {}

Error CrashStory::explain(const Error& error, const std::string& where) const {
  return error.wrap(bed_.name() + ", killed " + where);
}

k8s::ObjectKey CrashStory::new_claim_key() { return {ns_, "crash-" + std::to_string(++claims_)}; }

Result<void> CrashStory::create_claim(const k8s::ObjectKey& key) {
  const auto nodes = bed_.nodes();
  const auto made = bed_.admin().create(
      claim_object({.key = key, .selected_node = nodes[claims_ % nodes.size()]}));
  if (!made.ok()) return made.error();
  return {};
}

Result<void> CrashStory::delete_claim(const k8s::ObjectKey& key) {
  return bed_.admin().remove(k8s::kPersistentVolumeClaims, key);
}

Result<void> CrashStory::add_bystanders() {
  LPP_RETURN_IF_ERROR(bed_.admin().apply(namespace_object(ns_)), "crash story");
  for (std::size_t i = 0; i < kBystanders; ++i) {
    Bystander bystander{.claim = new_claim_key(), .content = "data " + std::to_string(i)};
    LPP_RETURN_IF_ERROR(create_claim(bystander.claim), "bystander");
    LPP_ASSIGN_OR_RETURN(bystander.volume, audit_.wait_bound(bystander.claim), "bystander");
    LPP_RETURN_IF_ERROR(write_file(bystander.volume.disk + "/data", bystander.content), "data");
    bystanders_.push_back(std::move(bystander));
  }
  return audit_.wait_clean();
}

Result<void> CrashStory::check_bystanders() {
  for (const Bystander& bystander : bystanders_) {
    LPP_ASSIGN_OR_RETURN(const auto now, audit_.bound_volume(bystander.claim), "other volume");
    if (now.disk != bystander.volume.disk || text_of(now.disk + "/data") != bystander.content) {
      return Error{.message = "the data of volume " + now.pv + " was touched"};
    }
  }
  return {};
}

Result<void> CrashStory::remove_bystanders() {
  while (!bystanders_.empty()) {
    const Bystander bystander = std::move(bystanders_.back());
    bystanders_.pop_back();
    LPP_RETURN_IF_ERROR(delete_claim(bystander.claim), "bystander");
    LPP_RETURN_IF_ERROR(audit_.wait_deleted(bystander.claim, bystander.volume), "bystander");
  }
  LPP_RETURN_IF_ERROR(audit_.wait_empty(), "bystanders");
  return {};
}

Result<void> CrashStory::start_daemon() {
  LPP_RETURN_IF_ERROR(installation_.start_daemon(), "start");
  on_start_();
  return {};
}

Result<void> CrashStory::revive() {
  LPP_RETURN_IF_ERROR(start_daemon(), "again");
  return installation_.wait_ready();
}

Result<void> CrashStory::provoke(KillSwitch& kill, const std::function<Result<void>()>& act,
                                 const std::function<bool()>& finished) {
  installation_.proxy().set_hooks(kill.hooks());
  auto done = act();
  if (done.ok()) {
    done = wait_until(
        "the story ends or the daemon is killed",
        [&]() -> std::string {
          if (kill.fired()) return "";
          return finished() && kill.is_quiet() ? "" : "neither";
        },
        bed_.patience());
  }
  installation_.proxy().set_hooks({});
  LPP_RETURN_IF_ERROR(std::move(done), "story");
  if (!kill.fired()) return {};
  return revive();
}

Result<void> CrashStory::check_bound_and_write(const k8s::ObjectKey& key, VolumeFacts& volume) {
  LPP_ASSIGN_OR_RETURN(volume, audit_.wait_bound(key), "provision");
  LPP_RETURN_IF_ERROR(audit_.wait_clean(), "provision");
  LPP_RETURN_IF_ERROR(check_bystanders(), "provision");
  return write_file(volume.disk + "/data", "to be removed");
}

Result<void> CrashStory::check_deleted(const k8s::ObjectKey& key, const VolumeFacts& volume) {
  LPP_RETURN_IF_ERROR(audit_.wait_deleted(key, volume), "delete");
  LPP_RETURN_IF_ERROR(audit_.wait_clean(), "delete");
  return check_bystanders();
}

void CrashStory::note(const KillSwitch& kill, const CallPoint& point, Moment moment,
                      CrashSummary& summary) {
  if (!kill.fired()) return;
  ++summary.kills;
  summary.places.insert(std::string(name_of(moment)) + " " + point.kind);
  say_("killed " + kill.to_string());
}

Result<void> CrashStory::work_case(const CallPoint& making, const CallPoint& removing,
                                   Moment moment, CrashSummary& summary, Points* made,
                                   Points* removed) {
  const auto strike = [this] { installation_.kill_daemon(); };
  const auto key = new_claim_key();
  VolumeFacts volume;

  KillSwitch first(
      making.number, moment,
      [&](const ApiRequest& request) { return is_work_call(request) && counts(making, request); },
      strike);
  auto good = provoke(
      first, [&] { return create_claim(key); },
      [&] { return audit_.bound_volume(key).ok() && audit_.leftovers().empty(); });
  note(first, making, moment, summary);
  if (good.ok()) good = check_bound_and_write(key, volume);
  if (!good.ok()) return explain(good.error(), first.to_string() + " of making a volume");
  if (made != nullptr) *made = points_of(first.kinds());

  KillSwitch second(
      removing.number, moment,
      [&](const ApiRequest& request) { return is_work_call(request) && counts(removing, request); },
      strike);
  good = provoke(
      second, [&] { return delete_claim(key); },
      [&] {
        const auto found = bed_.admin().find(k8s::kPersistentVolumes, {"", volume.pv});
        return found.ok() && !found->has_value() && audit_.leftovers().empty();
      });
  note(second, removing, moment, summary);
  if (good.ok()) good = check_deleted(key, volume);
  if (!good.ok()) return explain(good.error(), second.to_string() + " of removing a volume");
  if (removed != nullptr) *removed = points_of(second.kinds());
  return {};
}

Result<CrashSummary> CrashStory::during_work() {
  CrashSummary summary;
  LPP_RETURN_IF_ERROR(revive(), "crash story");
  LPP_RETURN_IF_ERROR(add_bystanders(), "crash story");
  Points making;
  Points removing;
  LPP_RETURN_IF_ERROR(work_case({}, {}, Moment::kBefore, summary, &making, &removing), "dry run");
  for (const Moment moment : {Moment::kBefore, Moment::kAfter}) {
    for (std::size_t i = 0; i < std::max(making.size(), removing.size()); ++i) {
      LPP_RETURN_IF_ERROR(work_case(point_at(making, i), point_at(removing, i), moment, summary),
                          "case");
    }
  }
  LPP_RETURN_IF_ERROR(remove_bystanders(), "crash story");
  return summary;
}

Result<void> CrashStory::start_case(const CallPoint& point, Moment moment, CrashSummary& summary,
                                    Points* made) {
  installation_.kill_daemon();
  const Waiting old = waiting_;
  waiting_.claim = new_claim_key();

  KillSwitch kill(
      point.number, moment, [&](const ApiRequest& request) { return counts(point, request); },
      [this] { installation_.kill_daemon(); });
  auto good = provoke(
      kill,
      [&]() -> Result<void> {
        LPP_RETURN_IF_ERROR(create_claim(waiting_.claim), "claim");
        LPP_RETURN_IF_ERROR(delete_claim(old.claim), "claim");
        return start_daemon();
      },
      [&] {
        const auto found = bed_.admin().find(k8s::kPersistentVolumes, {"", old.volume.pv});
        return found.ok() && !found->has_value() && audit_.bound_volume(waiting_.claim).ok() &&
               audit_.leftovers().empty();
      });
  note(kill, point, moment, summary);
  if (made != nullptr) *made = points_of(kill.kinds());
  if (good.ok()) good = check_bound_and_write(waiting_.claim, waiting_.volume);
  if (good.ok()) good = check_deleted(old.claim, old.volume);
  if (!good.ok()) return explain(good.error(), kill.to_string() + " of a start");
  return {};
}

Result<CrashSummary> CrashStory::during_start(std::size_t every_nth) {
  CrashSummary summary;
  LPP_RETURN_IF_ERROR(revive(), "crash story");
  LPP_RETURN_IF_ERROR(add_bystanders(), "crash story");
  waiting_.claim = new_claim_key();
  LPP_RETURN_IF_ERROR(create_claim(waiting_.claim), "crash story");
  LPP_RETURN_IF_ERROR(check_bound_and_write(waiting_.claim, waiting_.volume), "crash story");
  Points points;
  LPP_RETURN_IF_ERROR(start_case({}, Moment::kBefore, summary, &points), "dry run");
  std::size_t seen = 0;
  for (const CallPoint& point : points) {
    // Reading changes nothing: one moment is enough for it.
    const bool reads = point.kind.starts_with("list") || point.kind.starts_with("watch") ||
                       point.kind.starts_with("get");
    for (const Moment moment : {Moment::kBefore, Moment::kAfter}) {
      if (reads && moment == Moment::kAfter) continue;
      if (seen++ % every_nth != 0) continue;
      LPP_RETURN_IF_ERROR(start_case(point, moment, summary), "case");
    }
  }
  LPP_RETURN_IF_ERROR(delete_claim(waiting_.claim), "crash story");
  LPP_RETURN_IF_ERROR(check_deleted(waiting_.claim, waiting_.volume), "crash story");
  LPP_RETURN_IF_ERROR(remove_bystanders(), "crash story");
  return summary;
}

}  // namespace lpp::testing
