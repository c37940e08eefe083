// SPDX-License-Identifier: Apache-2.0
#include "harness/fault_story.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/file_text.h"
#include "harness/kill_switch.h"
#include "harness/objects.h"

namespace lpp::testing {

namespace {

/// 404, and 409 for a delete with the object's UID as its precondition, say that the object does
/// not exist any more. A client must believe that.
bool says_gone(const Decision& decision) {
  return decision.kind == Decision::Kind::kReply &&
         (decision.status == 404 || decision.status == 409);
}

std::string data_of(const k8s::ObjectKey& claim) { return "what " + claim.name + " has written"; }

Result<void> write_data(const k8s::ObjectKey& claim, const VolumeFacts& volume) {
  std::ofstream file(volume.disk + "/data", std::ios::binary);
  file << data_of(claim);
  file.close();
  if (!file) return Error{.message = volume.disk + "/data: cannot be written"};
  return {};
}

Result<void> check_data(const k8s::ObjectKey& claim, const VolumeFacts& volume) {
  if (text_of(volume.disk + "/data") == data_of(claim)) return {};
  return Error{.message = "the data of " + claim.to_string() + " was touched: " + volume.disk};
}

}  // namespace

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = {
      {"404", Decision::reply(404)},
      {"409", Decision::reply(409)},
      {"409-exists", Decision::reply(409, "AlreadyExists")},
      {"410", Decision::reply(410)},
      {"429", Decision::reply(429, {}, std::chrono::seconds(1))},
      {"500", Decision::reply(500)},
      {"503", Decision::reply(503)},
      {"cut-before", Decision::cut_before()},
      {"cut-after", Decision::cut_after()},
      {"cut-answer", Decision::truncate(10)},
      {"hang", Decision::hang()},
      {"hang-after", Decision::hang_after()},
  };
  return faults;
}

FaultStory::FaultStory(Installation& installation, std::string ns)
    : installation_(installation), bed_(installation.bed()), audit_(bed_), ns_(std::move(ns)) {}

Result<void> FaultStory::learn() {
  const k8s::ObjectKey key{ns_, "meets-nothing"};
  KillSwitch making(0, KillSwitch::Moment::kBefore, is_work_call, {});
  installation_.proxy().set_hooks(making.hooks());
  const auto made =
      bed_.admin().create(claim_object({.key = key, .selected_node = bed_.nodes().front()}));
  if (!made.ok()) return made.error();
  LPP_ASSIGN_OR_RETURN(const auto volume, audit_.wait_bound(key), "learn");
  LPP_RETURN_IF_ERROR(audit_.wait_clean(), "learn");
  LPP_RETURN_IF_ERROR(making.wait_quiet(bed_.patience()), "learn");
  KillSwitch removing(0, KillSwitch::Moment::kBefore, is_work_call, {});
  installation_.proxy().set_hooks(removing.hooks());
  LPP_RETURN_IF_ERROR(bed_.admin().remove(k8s::kPersistentVolumeClaims, key), "learn");
  LPP_RETURN_IF_ERROR(audit_.wait_deleted(key, volume), "learn");
  LPP_RETURN_IF_ERROR(audit_.wait_clean(), "learn");
  LPP_RETURN_IF_ERROR(removing.wait_quiet(bed_.patience()), "learn");
  installation_.proxy().set_hooks({});

  const auto making_points = points_of(making.kinds());
  const auto removing_points = points_of(removing.kinds());
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < std::max(making_points.size(), removing_points.size()); ++i) {
    for (const Fault& fault : all_faults()) {
      // No name is a part of another one: they differ in the number or end differently.
      const std::string name = "c" + std::to_string(i + 1) + "-meets-" + fault.name + "-x";
      cases_[name] = Case{.claim = {ns_, name},
                          .fault = &fault,
                          .making = point_at(making_points, i),
                          .removing = point_at(removing_points, i)};
    }
  }
  return {};
}

Result<void> FaultStory::add_bystanders() {
  for (const auto& node : bed_.nodes()) {
    Bystander bystander{.claim = {ns_, "stays-on-" + node}};
    const auto made =
        bed_.admin().create(claim_object({.key = bystander.claim, .selected_node = node}));
    if (!made.ok()) return made.error();
    LPP_ASSIGN_OR_RETURN(bystander.volume, audit_.wait_bound(bystander.claim), "bystander");
    LPP_RETURN_IF_ERROR(write_data(bystander.claim, bystander.volume), "bystander");
    bystanders_.push_back(std::move(bystander));
  }
  return {};
}

Result<void> FaultStory::check_bystanders() const {
  for (const auto& [claim, volume] : bystanders_) {
    LPP_RETURN_IF_ERROR(check_data(claim, volume), "bystander");
  }
  return {};
}

/// Of all volumes, when no work is left that could still touch one.
Result<void> FaultStory::check_contents() {
  MutexLock lock(mutex_);
  for (const auto& [name, one] : cases_) {
    auto good = check_data(one.claim, one.volume);
    if (!good.ok()) return explain(good.error(), one);
  }
  return check_bystanders();
}

FaultStory::Case* FaultStory::concerned(const ApiRequest& request) {
  for (auto& [name, one] : cases_) {
    for (const std::string& mark : {name, one.uid}) {
      if (mark.empty()) continue;
      if (request.target.find(mark) != std::string::npos ||
          request.body.find(mark) != std::string::npos) {
        return &one;
      }
    }
  }
  return nullptr;
}

Decision FaultStory::before(const ApiRequest& request) {
  if (!is_work_call(request)) return Decision::forward();
  MutexLock lock(mutex_);
  Case* one = concerned(request);
  if (one == nullptr) return Decision::forward();
  const CallPoint& point = removing_ ? one->removing : one->making;
  if (++one->seen[request.kind()] != point.number || request.kind() != point.kind) {
    return Decision::forward();
  }
  if (request.verb == "delete" && says_gone(one->fault->decision)) return Decision::forward();
  one->met = request.kind();
  return one->fault->decision;
}

void FaultStory::begin_removal() {
  MutexLock lock(mutex_);
  removing_ = true;
  for (auto& [name, one] : cases_) {
    one.seen.clear();
    one.met.clear();
  }
}

void FaultStory::collect(FaultSummary& summary, const std::string& phase) {
  MutexLock lock(mutex_);
  for (const auto& [name, one] : cases_) {
    if (!one.met.empty()) summary.met.push_back(phase + " " + one.met + ": " + one.fault->name);
  }
}

Error FaultStory::explain(const Error& error, const Case& one) const {
  const std::string met = one.met.empty() ? "no call" : one.met;
  return error.wrap(bed_.name() + ": " + met + " met " + one.fault->name);
}

Result<void> FaultStory::make_all() {
  std::vector<std::string> names;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, one] : cases_) names.push_back(name);
  }
  const auto nodes = bed_.nodes();
  std::size_t next = 0;
  for (const std::string& name : names) {
    const auto made = bed_.admin().create(
        claim_object({.key = {ns_, name}, .selected_node = nodes[next++ % nodes.size()]}));
    if (!made.ok()) return made.error().wrap(name);
    MutexLock lock(mutex_);
    cases_[name].uid = (*made)["metadata"]["uid"];
  }
  std::string failures;
  for (const std::string& name : names) {
    auto volume =
        failures.empty() ? audit_.wait_bound({ns_, name}) : audit_.bound_volume({ns_, name});
    const auto written = volume.ok() ? write_data({ns_, name}, *volume) : volume.error();
    MutexLock lock(mutex_);
    if (volume.ok()) cases_[name].volume = *std::move(volume);
    if (!written.ok()) failures += "\n" + explain(written.error(), cases_[name]).message;
  }
  if (!failures.empty()) return Error{.message = failures};
  LPP_RETURN_IF_ERROR(check_clean(), "make");
  return check_contents();
}

Result<void> FaultStory::check_clean() {
  auto clean = audit_.wait_clean();
  if (clean.ok()) return {};
  MutexLock lock(mutex_);
  for (const auto& [name, one] : cases_) {
    if (clean.error().message.find(one.uid) != std::string::npos) {
      return explain(clean.error(), one);
    }
  }
  return clean;
}

Result<void> FaultStory::remove_all() {
  std::vector<Case> all;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, one] : cases_) all.push_back(one);
  }
  for (const Case& one : all) {
    LPP_RETURN_IF_ERROR(bed_.admin().remove(k8s::kPersistentVolumeClaims, one.claim), "remove");
  }
  std::string failures;
  for (const Case& one : all) {
    const auto gone = failures.empty() ? audit_.wait_deleted(one.claim, one.volume)
                                       : audit_.deleted(one.claim, one.volume);
    MutexLock lock(mutex_);
    if (!gone.ok()) failures += "\n" + explain(gone.error(), cases_[one.claim.name]).message;
  }
  if (!failures.empty()) return Error{.message = failures};
  LPP_RETURN_IF_ERROR(check_clean(), "remove");
  return check_bystanders();
}

Result<FaultSummary> FaultStory::run() {
  FaultSummary summary;
  LPP_RETURN_IF_ERROR(bed_.admin().apply(namespace_object(ns_)), "fault story");
  LPP_RETURN_IF_ERROR(learn(), "fault story");
  LPP_RETURN_IF_ERROR(add_bystanders(), "fault story");
  installation_.proxy().set_hooks(
      {.before = [this](const ApiRequest& request) { return before(request); }});
  auto done = make_all();
  collect(summary, "make:");
  if (done.ok()) {
    begin_removal();
    done = remove_all();
    collect(summary, "remove:");
  }
  installation_.proxy().set_hooks({});
  installation_.proxy().release_hung();
  if (!done.ok()) return std::move(done).error().wrap("fault story");
  return summary;
}

}  // namespace lpp::testing
