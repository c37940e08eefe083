// SPDX-License-Identifier: Apache-2.0
// Many agents at one controller.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "agent/protocol.h"
#include "fakes/needs.h"
#include "harness/raw_client.h"
#include "support/agent_story.h"

namespace lpp::testing {
namespace {

constexpr int kFew = 30;  // until the allocator and the caches have what they keep
constexpr int kMany = 500;
constexpr rlim_t kDescriptors = 4096;  // of this process, and of the controller

rlimit descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit : rlimit{};
}

/// The usual soft limit is 1024.
void raise_descriptors() {
  rlimit limit = descriptors();
  if (limit.rlim_cur >= kDescriptors) return;
  limit.rlim_cur = kDescriptors;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/// The controller, and agents that do nothing but hold a poll.
struct ManyAgents : AgentStory {
  ManyAgents() {
    raise_descriptors();
    start_with({});
  }

  void connect_until(int count) {
    std::vector<agent::Base> bases;
    for (const auto& base : bed->base_paths()) bases.push_back({.path = base});
    for (int i = static_cast<int>(clients.size()); i < count; ++i) {
      const std::string token = agents->token("many-" + std::to_string(i));
      clients.emplace_back(agents->port());
      RawClient& client = clients.back();
      REQUIRE(client.connected());
      const auto welcomed =
          client.ask(std::string(agent::kHelloTarget), token, encode(agent::Hello{}));
      REQUIRE(welcomed.status == 200);
      const std::string session = LPP_MUST(agent::decode_welcome(welcomed.body)).session;
      const agent::Tell all{.session = session, .everything = true, .bases = bases};
      REQUIRE(client.ask(std::string(agent::kTellTarget), token, encode(all)).status == 200);
      REQUIRE(client.post(std::string(agent::kPollTarget), token,
                          encode(agent::Poll{.session = session})));
    }
    wait_for_metric("local_path_provisioner_agents_connected " + std::to_string(count));
    wait_for_metric("local_path_provisioner_agent_requests_total{request=\"poll\"} " +
                    std::to_string(count));
  }
  int status(const char* name) const { return status_kib(installation->daemon().pid(), name); }

  std::vector<RawClient> clients;
};

/// Sanitizers keep more, and connections wait for them too long.
TEST_CASE("hundreds of agents that wait for orders cost the controller no thread and little each" *
          Needs(!is_sanitized(), "not here: a build without sanitizers") *
          Needs(descriptors().rlim_max >= kDescriptors,
                "not here: a hard limit of 4096 descriptors")) {
  ManyAgents story;
  story.connect_until(kFew);
  const int threads = story.status("Threads");
  const int memory = story.status("RssAnon");
  REQUIRE(memory > 0);
  story.connect_until(kMany);
  const double each = static_cast<double>(story.status("RssAnon") - memory) / double{kMany - kFew};
  MESSAGE(each, " KiB for each agent");
  CHECK(story.status("Threads") < threads + 10);  // some come and go
  // A quarter more than what is promised: what is measured is what the allocator holds.
  CHECK(each < 25);
}

}  // namespace
}  // namespace lpp::testing
