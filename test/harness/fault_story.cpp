#include "harness/fault_story.h"

#include <nlohmann/json.hpp>

#include "harness/crash_story.h"
#include "harness/objects.h"

namespace lpp::testing {

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> kFaults = {
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
  return kFaults;
}

FaultStory::FaultStory(Installation& installation, std::string ns, std::size_t calls)
    : installation_(installation), bed_(installation.bed()), audit_(bed_), ns_(std::move(ns)) {
  MutexLock lock(mutex_);
  for (std::size_t call = 1; call <= calls; ++call) {
    for (const Fault& fault : all_faults()) {
      // No name is the beginning of another one: each ends with a letter that no number has.
      const std::string name = "call-" + std::to_string(call) + "-meets-" + fault.name + "-x";
      cases_[name] = Case{.claim = {ns_, name}, .fault = &fault, .call = call};
    }
  }
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
  if (one == nullptr || ++one->seen != one->call) return Decision::forward();
  one->met = request.verb + " " + request.resource;
  return one->fault->decision;
}

void FaultStory::begin_phase() {
  MutexLock lock(mutex_);
  for (auto& [name, one] : cases_) {
    one.seen = 0;
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
  return error.wrap(bed_.name() + ": call " + std::to_string(one.call) + " (" + one.met + ") met " +
                    one.fault->name);
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
  for (const std::string& name : names) {
    auto volume = audit_.wait_bound({ns_, name});
    MutexLock lock(mutex_);
    if (!volume.ok()) return explain(volume.error(), cases_[name]);
    cases_[name].volume = *std::move(volume);
  }
  return audit_.wait_clean();
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
  for (const Case& one : all) {
    const auto gone = audit_.wait_deleted(one.claim, one.volume);
    if (gone.ok()) continue;
    MutexLock lock(mutex_);
    return explain(gone.error(), cases_[one.claim.name]);
  }
  return audit_.wait_clean();
}

Result<FaultSummary> FaultStory::run() {
  FaultSummary summary;
  LPP_RETURN_IF_ERROR(bed_.admin().apply(namespace_object(ns_)), "fault story");
  installation_.proxy().set_hooks(
      {.before = [this](const ApiRequest& request) { return before(request); }});
  auto done = make_all();
  collect(summary, "make:");
  if (done.ok()) {
    begin_phase();
    done = remove_all();
    collect(summary, "remove:");
  }
  installation_.proxy().set_hooks({});
  installation_.proxy().release_hung();
  if (!done.ok()) return std::move(done).error().wrap("fault story");
  return summary;
}

}  // namespace lpp::testing
