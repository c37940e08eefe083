// SPDX-License-Identifier: Apache-2.0
#include "app/status_page.h"

#include <map>

#include "app/health_checks.h"
#include "app/html.h"
#include "app/version.h"
#include "base/log.h"
#include "base/strings.h"

namespace lpp::app {

namespace {

using Mood = HtmlPage::Mood;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMaxOperations = 100;
constexpr std::size_t kMaxConfigRows = 200;

std::string when(std::chrono::system_clock::time_point time,
                 std::chrono::system_clock::time_point now) {
  if (time == std::chrono::system_clock::time_point{}) return "never";
  return fmt::format("{} ago ({})", human(std::chrono::duration_cast<Duration>(now - time)),
                     format_rfc3339(time));
}

void add_checks(HtmlPage& page, const Subjects& subjects) {
  bool good = true;
  for (const auto& checks : {live_checks(subjects), ready_checks(subjects)}) {
    for (const HealthCheck& check : checks) {
      const auto result = check.check();
      if (result.ok()) continue;
      good = false;
      page.paragraph(check.name + ": " + result.error().message, Mood::kBad);
    }
  }
  if (good) page.paragraph("Alive and ready.", Mood::kGood);
  const ConfigLoader& loader = subjects.config;
  if (loader.config_counts().refusal.current() || loader.template_counts().refusal.current()) {
    page.paragraph("A change of the configuration is refused, see below.", Mood::kBad);
  }
}

std::string role(const Subjects& subjects) {
  const bool active = subjects.controller.claim_queue().has_value();
  if (subjects.elector == nullptr) {
    return active ? "serves claims (no leader election)" : "does not serve claims yet";
  }
  if (active) return "leader: serves claims";
  const std::string leader = subjects.elector->leader();
  return leader.empty() ? "standby; no leader is known" : "standby; the leader is " + leader;
}

void add_process(HtmlPage& page, const Subjects& subjects,
                 std::chrono::system_clock::time_point now) {
  page.facts({{"Version", std::string(version())},
              {"Provisioner", to_string(subjects.options.served_names())},
              {"Role", role(subjects)},
              {"Identity", subjects.identity},
              {"Namespace", subjects.options.namespace_name},
              {"API server", subjects.api_host},
              {"Started", when(subjects.started_at, now)},
              {"Now", format_rfc3339(now)}});
}

void add_operations(HtmlPage& page, const Subjects& subjects) {
  Rows rows;
  for (const auto& one : subjects.figures.in_flight(kMaxOperations)) {
    rows.push_back({human(one.age), std::string(operation::label_of(one.kind)),
                    one.claim.to_string(), one.volume, one.node,
                    fmt::format("{} for {}", to_string(one.step), human(one.step_age)),
                    one.attempt > 0 ? std::to_string(one.attempt) : "", one.problem});
  }
  std::size_t total = 0;
  for (const auto& [work, load] : subjects.figures.load()) total += load.count;
  page.heading(fmt::format("Operations in flight: {}", total))
      .table({"Age", "What", "Claim", "Volume", "Node", "Step", "Attempt", "Problem"}, rows,
             "None.");
  if (total > rows.size()) {
    page.paragraph(fmt::format("These are the {} oldest ones.", rows.size()));
  }
}

void add_failures(HtmlPage& page, const Subjects& subjects,
                  std::chrono::system_clock::time_point now) {
  Rows rows;
  for (const auto& [failure, at] : subjects.figures.recent_failures()) {
    rows.push_back({when(at, now), std::string(operation::label_of(failure.kind)),
                    failure.claim.to_string(), failure.volume, failure.node, failure.reason,
                    failure.message});
  }
  page.heading("Recent failures")
      .table({"When", "What", "Claim", "Volume", "Node", "Cause", "Message"}, rows,
             "None since this process started.");
}

void add_queues(HtmlPage& page, const Subjects& subjects) {
  Rows rows;
  const auto add = [&rows](const char* name, const std::optional<k8s::WorkQueueState>& state) {
    if (!state) return;
    rows.push_back({name, std::to_string(state->ready), std::to_string(state->in_work),
                    std::to_string(state->delayed), human(state->longest_waiting),
                    human(state->longest_work)});
  };
  add("claims", subjects.controller.claim_queue());
  add("volumes", subjects.controller.volume_queue());
  page.heading("Queues").table(
      {"Queue", "Ready", "In work", "Later", "Longest wait", "Longest step"}, rows,
      "Nothing is worked on by this process.");
}

void add_text(HtmlPage& page, const char* what, const std::string& source,
              const ConfigLoader::Counts& counts, std::chrono::system_clock::time_point now) {
  page.facts({{what, source}, {"In force since", when(counts.accepted_at, now)}});
  if (const auto refusal = counts.refusal.current()) {
    page.paragraph("The newest text is refused: " + *refusal, Mood::kBad);
  }
}

void add_paths(Rows& rows, const std::string& storage_class, const config::PathConfig& paths) {
  if (paths.shared()) rows.push_back({storage_class, "all", paths.shared_file_system_path});
  for (const auto& [node, list] : paths.node_path_map) {
    std::string text;
    for (const std::string& path : list) text += (text.empty() ? "" : ", ") + path;
    rows.push_back({storage_class, node == config::kDefaultNode ? "every other node" : node,
                    text.empty() ? "none: no volumes here" : text});
  }
}

void add_config(HtmlPage& page, const Subjects& subjects,
                std::chrono::system_clock::time_point now) {
  const ConfigLoader& loader = subjects.config;
  page.heading("Configuration in force");
  add_text(page, "Configuration", loader.config_name(), loader.config_counts(), now);
  add_text(page, "Helper pod template", loader.template_name(), loader.template_counts(), now);
  const auto config = loader.config().current();
  if (config == nullptr) return;
  page.facts({{"Generation", std::to_string(config->generation)},
              {"Time limit of scripts", human(config->cmd_timeout)}});
  Rows rows;
  add_paths(rows, "any", config->paths);
  for (const auto& [name, paths] : config->classes) add_paths(rows, name, paths);
  const std::size_t total = rows.size();
  if (total > kMaxConfigRows) rows.resize(kMaxConfigRows);
  page.table({"Class", "Node", "Paths"}, rows, "No paths.");
  if (total > rows.size()) page.paragraph(fmt::format("{} more.", total - rows.size()));
}

void add_caches(HtmlPage& page, const Subjects& subjects) {
  const TimePoint now = subjects.clock.now();
  Rows rows;
  for (const CacheSubject& cache : subjects.caches) {
    const TimePoint heard = cache.stats->last_contact;
    rows.push_back({cache.resource, cache.has_synced() ? "yes" : "no", std::to_string(cache.size()),
                    std::to_string(cache.stats->lists.load()),
                    std::to_string(cache.stats->failures.load()),
                    heard == TimePoint::min() ? "never" : human(now - heard) + " ago"});
  }
  page.heading("Caches").table(
      {"Objects", "Complete", "Count", "Lists", "Failures", "API server heard"}, rows, "None.");
  std::map<std::string, std::size_t> phases;
  for (const auto& pod : subjects.helper_pods.list()) ++phases[pod->phase];
  std::string pods;
  for (const auto& [phase, count] : phases) {
    pods +=
        fmt::format("{}{} {}", pods.empty() ? "" : ", ", count, phase.empty() ? "Pending" : phase);
  }
  page.paragraph("Helper pods: " + (pods.empty() ? "none" : pods));
}

std::string_view word_of(operation::Progress::State state) {
  using State = operation::Progress::State;
  switch (state) {
    case State::kWaiting: return "waiting";
    case State::kRunning: return "running";
    case State::kLate: return "late";
    case State::kEnding: return "ending";
    case State::kSucceeded:
    case State::kFailed: break;
  }
  return state == State::kSucceeded ? "done" : "failed";
}

std::string works_of(const agent::AgentState& one, const std::vector<agent::AgentWork>& oldest) {
  std::string text = one.works == 0 ? "none" : "";
  for (const auto& work : oldest) {
    text += fmt::format("{}{} {} ({} for {})", text.empty() ? "" : ", ",
                        to_string(work.operation->kind), work.operation->volume_name,
                        word_of(work.state), human(work.age));
    if (work.gone > 0) {
      text.insert(text.size() - 1, fmt::format(", {} files and directories gone", work.gone));
    }
  }
  if (one.works > oldest.size()) {
    text += fmt::format(" and {} more", one.works - oldest.size());
  }
  if (one.left_out > 0) text += fmt::format("; told and left out: {}", one.left_out);
  for (const std::string& words : one.left_out_words) text += " (" + words + ")";
  return text;
}

void add_agents(HtmlPage& page, const Subjects& subjects,
                std::chrono::system_clock::time_point now) {
  if (!subjects.agents) return;
  Rows rows;
  const auto all = subjects.agents().agents;
  for (const auto& one : all) {
    if (rows.size() == kMaxConfigRows) break;
    std::string bases;
    for (const auto& base : one.bases) {
      bases += (bases.empty() ? "" : ", ") + base.path;
      if (!base.problem.empty()) bases += " (" + base.problem + ")";
      if (base.limits_not_held > 0) {
        bases += fmt::format(" ({} of {} volumes have a limit that does not hold",
                             base.limits_not_held, base.volumes);
        if (base.limits_taken_off > 0) {
          bases += fmt::format(
              ": the owners of {} took the directory out of it, or put another "
              "in its place",
              base.limits_taken_off);
        }
        bases += ")";
      }
      if (!base.cluster.empty()) bases += " (with records of cluster " + base.cluster + ")";
    }
    std::string state = one.presence == agent::Presence::kConnected  ? "connected"
                        : one.presence == agent::Presence::kExpected ? "expected"
                                                                     : "away";
    if (!one.rival.empty()) {
      state += fmt::format(": pods {} and {} end each other's sessions", one.pod, one.rival);
    }
    rows.push_back({one.node, std::move(state), when(one.since, now), one.program, bases,
                    works_of(one, subjects.oldest_works(one.node))});
  }
  page.heading("Agents").table(
      {"Node", "State", "Session since", "Version", "Base paths", "Operations"}, rows,
      "No agent has connected to this process.");
  if (all.size() > rows.size()) page.paragraph(fmt::format("{} more.", all.size() - rows.size()));
}

}  // namespace

std::string status_page(const Subjects& subjects) {
  const auto now = subjects.clock.wall_now();
  HtmlPage page("local-path-provisioner");
  add_checks(page, subjects);
  add_process(page, subjects, now);
  add_operations(page, subjects);
  add_failures(page, subjects, now);
  add_queues(page, subjects);
  add_config(page, subjects, now);
  add_agents(page, subjects, now);
  add_caches(page, subjects);
  std::vector<std::string> links{"/livez?verbose", "/readyz?verbose"};
  if (subjects.options.metrics) links.emplace_back("/metrics");
  page.links(links);
  return page.text();
}

}  // namespace lpp::app
