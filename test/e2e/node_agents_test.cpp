// SPDX-License-Identifier: Apache-2.0
// A node agent in its pod, with what the manifest gives it and nothing more, on a real node.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "account.h"
#include "agent/protocol.h"
#include "disk.h"
#include "harness/agent_account.h"
#include "harness/applied_objects.h"
#include "harness/file_text.h"
#include "harness/process_probe.h"
#include "harness/raw_client.h"
#include "operation/operation.h"
#include "real_agents.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using agent::kHelloTarget;
using agent::kPollTarget;
using agent::kTellTarget;
using nlohmann::json;

/// A line of /proc/PID/status, without its name.
std::string status_of(pid_t pid, const std::string& name) {
  const std::string text = "\n" + text_of("/proc/" + std::to_string(pid) + "/status");
  const auto at = text.find("\n" + name + ":\t");
  REQUIRE(at != std::string::npos);
  const auto begin = at + name.size() + 3;
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// What the process sees mounted, by place: "ro,relatime".
std::map<std::string, std::string> mounts_of(pid_t pid) {
  std::map<std::string, std::string> options_of;
  std::istringstream lines(text_of("/proc/" + std::to_string(pid) + "/mounts"));
  std::string source;
  std::string place;
  std::string type;
  std::string options;
  std::string rest;
  while (lines >> source >> place >> type >> options && std::getline(lines, rest)) {
    options_of[place] = options;
  }
  return options_of;
}

/// Those of them that are not what every container has, and neither token nor CA.
std::vector<std::string> mounted_from_node(pid_t pid) {
  std::vector<std::string> places;
  for (const auto& [place, options] : mounts_of(pid)) {
    const bool usual = place == "/" || place == "/etc/hosts" || place == "/etc/hostname" ||
                       place == "/etc/resolv.conf" || place == "/proc" || place == "/dev" ||
                       place == "/sys" || place.starts_with("/proc/") ||
                       place.starts_with("/dev/") || place.starts_with("/sys/") ||
                       place == "/var/run/secrets/local-path-provisioner" ||
                       place == "/run/secrets/local-path-provisioner" ||
                       place == "/etc/local-path-provisioner/agents-ca";
    if (!usual) places.push_back(place);
  }
  return places;
}

/// Of the ports in its network namespace on which somebody listens, the lines of /proc.
std::vector<std::string> listening_with(pid_t pid) {
  std::vector<std::string> found;
  for (const char* const kind : {"tcp", "tcp6"}) {
    std::istringstream lines(text_of("/proc/" + std::to_string(pid) + "/net/" + kind));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" 0A ") != std::string::npos) found.push_back(line);
    }
  }
  return found;
}

/// What the kernel answers to whoever is in the process's place: with its mounts, its processes and
/// its capabilities. 0 where it lets him.
struct Attempts {
  int look_at_node;     // its configuration
  int mount;            // over a base path
  int make_device;      // below a base path
  int leave_root;       // into another root directory
  int open_by_handle;   // a file that no path leads to
  int signal_outside;   // a process of the node
  int in_own_base = 1;  // what it is for
};
Attempts attempts_in_place_of(pid_t pid, const std::string& base_path) {
  const std::string process = "/proc/" + std::to_string(pid);
  const int mounts = ::open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC);
  const int processes = ::open((process + "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(mounts >= 0);
  REQUIRE(processes >= 0);
  const pid_t outside = ::getpid();
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const std::string device = base_path + "/device";
  const std::string file = base_path + "/a-file-of-the-agent";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // system calls only: the parent has threads
    Attempts seen{};
    const auto answer = [](long result) { return result >= 0 ? 0 : errno; };
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> rights{};
    rights[0].effective = rights[0].permitted = 0x1b;
    if (::setns(processes, CLONE_NEWPID) != 0) ::_exit(1);
    // Who is born from now on is among them.
    const pid_t among_them = ::fork();
    if (among_them != 0) {
      int status = 0;
      ::_exit(::waitpid(among_them, &status, 0) == among_them && status == 0 ? 0 : 1);
    }
    if (::setns(mounts, CLONE_NEWNS) != 0 || ::syscall(SYS_capset, &header, rights.data()) != 0) {
      ::_exit(1);
    }
    seen.signal_outside = answer(::kill(outside, 0));
    seen.look_at_node = answer(::open("/etc/kubernetes", O_RDONLY));
    seen.mount = answer(::mount("none", base_path.c_str(), "tmpfs", 0, nullptr));
    seen.make_device = answer(::mknod(device.c_str(), S_IFBLK | 0600, makedev(8, 0)));
    seen.leave_root = answer(::chroot(base_path.c_str()));
    alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> room{};
    auto* const handle = reinterpret_cast<file_handle*>(room.data());
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount_id = 0;
    const int base = ::open(base_path.c_str(), O_RDONLY | O_DIRECTORY);
    if (::name_to_handle_at(base, "", handle, &mount_id, AT_EMPTY_PATH) != 0) ::_exit(1);
    seen.open_by_handle = answer(::open_by_handle_at(base, handle, O_RDONLY));
    seen.in_own_base = answer(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
    ::unlink(file.c_str());
    ::_exit(::write(ends[1], &seen, sizeof seen) == sizeof seen ? 0 : 1);
  }
  ::close(mounts);
  ::close(processes);
  ::close(ends[1]);
  Attempts seen{};
  const bool all = ::read(ends[0], &seen, sizeof seen) == sizeof seen;
  ::close(ends[0]);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  REQUIRE_MESSAGE(all, "it could not take the process's place: ", status);
  return seen;
}

/// A process that neither works nor speaks for a while; its connections stay.
class Frozen {
 public:
  explicit Frozen(pid_t pid) : pid_(pid) { REQUIRE(freeze(pid_)); }
  ~Frozen() { thaw(); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  void thaw() const { ::kill(pid_, SIGCONT); }

 private:
  const pid_t pid_;
};

/// Whether something in the records of the base path is being removed.
bool is_being_removed(const std::string& records) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(records, none)) {
    if (entry.path().filename().string().starts_with("gone.")) return true;
  }
  return false;
}

/// So much that its removal takes a while.
void fill(const std::string& directory) {
  for (int d = 0; d < 60; ++d) {
    const std::string folder = directory + "/" + std::to_string(d);
    fs::create_directory(folder);
    for (int f = 0; f < 500; ++f) write_text(folder + "/" + std::to_string(f), "");
  }
}

/// Removes the claim, and kills the agent in the middle of what it removes for that; false: it was
/// through with it, and lives.
bool is_killed_removing(RealStory& story, pid_t agent, const k8s::ObjectKey& claim,
                        const VolumeFacts& volume) {
  const std::string records = fs::path(volume.disk).parent_path() / ".local-path-provisioner";
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(
      wait_until("the removal has begun",
                 [&]() -> std::string {
                   return is_being_removed(records) || !fs::exists(volume.disk) ? "" : "not yet";
                 },
                 {.limit = story.bed->patience().limit, .interval = std::chrono::milliseconds(1)}));
  const Frozen frozen(agent);  // nothing goes on while we look
  if (!is_being_removed(records)) return false;
  REQUIRE(::kill(agent, SIGKILL) == 0);
  return true;
}

/// What the agent has on record of what is over goes soon; the next tests find no trace of it.
void wait_nothing_on_record(RealStory& story) {
  LPP_MUST(wait_until(
      "nothing is on the agent's record",
      [&]() -> std::string {
        for (const auto& base : story.bed->base_paths()) {
          std::error_code none;
          for (const auto& entry :
               fs::directory_iterator(base + "/.local-path-provisioner", none)) {
            const std::string name = entry.path().filename();
            for (const char* const kind : {"work.", "new.", "gone.", "volume."}) {
              if (name.starts_with(kind)) return name;
            }
          }
        }
        return "";
      },
      story.bed->patience()));
}

TEST_CASE("real node: an agent's pod makes and removes volumes, and goes on when it is killed") {
  RealAgents agents("agents");
  RealStory& story = agents.story();
  agents.start();
  AppliedObjects applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "agents"));
  const std::string node = story.bed->nodes().front();
  const auto want = [&](const std::string& name) {
    LPP_MUST(applied.apply(claim_object({.key = applied.key(name), .selected_node = node})));
    return applied.key(name);
  };

  // What the manifest says is so.
  const pid_t first = agents.process();
  CHECK(status_of(first, "Seccomp") == "2");  // a filter
  CHECK(status_of(first, "NoNewPrivs") == "1");
  // CHOWN, DAC_OVERRIDE, FOWNER and FSETID
  CHECK(status_of(first, "CapEff") == "000000000000001b");
  CHECK(status_of(first, "CapBnd") == "000000000000001b");
  CHECK(mounts_of(first)["/"].starts_with("ro"));
  // Whoever takes it over sees the base paths, and nothing else of the node.
  CHECK(mounted_from_node(first) == story.bed->base_paths());
  for (const char* kind : {"mnt", "pid", "net", "ipc", "uts"}) {
    CAPTURE(kind);
    const std::string link = "/ns/" + std::string(kind);
    CHECK(fs::read_symlink("/proc/" + std::to_string(first) + link) !=
          fs::read_symlink("/proc/self" + link));
  }
  const Attempts inside = attempts_in_place_of(first, story.bed->base_paths().front());
  CHECK(inside.look_at_node == ENOENT);
  CHECK(inside.mount == EPERM);
  CHECK(inside.make_device == EPERM);
  CHECK(inside.leave_root == EPERM);
  CHECK(inside.open_by_handle == EPERM);
  CHECK(inside.signal_outside == ESRCH);
  CHECK(inside.in_own_base == 0);
  CHECK(listening_with(first) == std::vector<std::string>());

  const auto small = want("small");
  const auto quick = LPP_MUST(story.audit.wait_bound(small));
  CHECK((fs::status(quick.disk).permissions() & fs::perms::mask) == fs::perms::all);
  // As tenants leave it: of another user, and closed to everybody else.
  write_text(quick.disk + "/mine/data", "a tenant's");
  REQUIRE(::chown((quick.disk + "/mine").c_str(), 1234, 1234) == 0);
  fs::permissions(quick.disk + "/mine", fs::perms::owner_all);
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, small));
  LPP_MUST(story.audit.wait_deleted(small, quick));

  // Killed in the middle of a removal, which takes a while; it may be over before we have looked.
  const auto other = want("other");
  const auto kept = LPP_MUST(story.audit.wait_bound(other));
  write_text(kept.disk + "/data", "somebody else's");
  k8s::ObjectKey large;
  VolumeFacts slow;
  bool caught = false;
  for (int i = 0; i < 5 && !caught; ++i) {
    large = want("large-" + std::to_string(i));
    slow = LPP_MUST(story.audit.wait_bound(large));
    fill(slow.disk);
    caught = is_killed_removing(story, first, large, slow);
    if (!caught) LPP_MUST(story.audit.wait_deleted(large, slow));
  }
  REQUIRE(caught);
  const auto late = want("late");
  const pid_t second = agents.process(first);
  LPP_MUST(story.audit.wait_deleted(large, slow));
  const auto waited = LPP_MUST(story.audit.wait_bound(late));
  // The kubelet tells of it when it has time.
  LPP_MUST(wait_until(
      "the pod shows the restart",
      [&]() -> std::string { return agents.restarts() > 0 ? "" : "not yet"; },
      story.bed->patience()));
  CHECK(agents.restarts() == 1);
  CHECK(second != first);
  CHECK(text_of(kept.disk + "/data") == "somebody else's");
  for (const auto& [claim, volume] : {std::pair(other, kept), std::pair(late, waited)}) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
    LPP_MUST(story.audit.wait_deleted(claim, volume));
  }
  wait_nothing_on_record(story);
  LPP_MUST(story.audit.wait_clean());
  CHECK_FALSE(agents.made_helper_pods());
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real node: an agent of another image takes over among claims, and the former again") {
  RealAgents agents("agents-image");
  RealStory& story = agents.story();
  agents.start();
  AppliedObjects applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "agents-image"));
  const std::string node = story.bed->nodes().front();
  std::map<std::string, VolumeFacts> volumes;  // by claim; each holds its claim's name
  for (const char* image : {"LPP_E2E_OTHER_IMAGE", "LPP_E2E_IMAGE"}) {
    CAPTURE(image);
    std::vector<std::string> wanted;
    const auto want = [&](int count) {
      for (int i = 0; i < count; ++i) {
        wanted.push_back("c" + std::to_string(volumes.size() + wanted.size()));
        LPP_MUST(applied.apply(
            claim_object({.key = applied.key(wanted.back()), .selected_node = node})));
      }
    };
    // What was there goes and what is new comes while nobody is there to do it.
    std::vector<std::string> unwanted;
    for (const auto& [claim, volume] : volumes) {
      if (unwanted.size() < volumes.size() / 2) unwanted.push_back(claim);
    }
    want(5);
    for (const auto& claim : unwanted) {
      LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, applied.key(claim)));
    }
    const std::string former = agents.pod();
    agents.change_image(required_setting(image));
    want(5);
    agents.wait_for_image(required_setting(image));
    CHECK(agents.pod() != former);
    for (const auto& claim : unwanted) {
      LPP_MUST(story.audit.wait_deleted(applied.key(claim), volumes[claim]));
      volumes.erase(claim);
    }
    for (const auto& [claim, volume] : volumes) CHECK(text_of(volume.disk + "/data") == claim);
    for (const auto& claim : wanted) {
      volumes[claim] = LPP_MUST(story.audit.wait_bound(applied.key(claim)));
      write_text(volumes[claim].disk + "/data", claim);
    }
  }
  for (const auto& [claim, volume] : volumes) {
    CHECK(text_of(volume.disk + "/data") == claim);
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, applied.key(claim)));
    LPP_MUST(story.audit.wait_deleted(applied.key(claim), volume));
  }
  wait_nothing_on_record(story);
  LPP_MUST(story.audit.wait_clean());
  CHECK_FALSE(agents.made_helper_pods());
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real node: an agent's token is good for its own node, and for nothing else") {
  RealAgents agents("agents-attack");
  RealStory& story = agents.story();
  agents.start();
  AppliedObjects applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "agents-attack"));
  const std::string node = story.bed->nodes().front();
  const k8s::ObjectKey account{kDaemonNamespace, kAgentAccount};
  const std::string audience(agent::kAudience);
  const std::string pod = agents.pod();
  // The very token that whoever takes over the agent finds.
  const std::string root = "/proc/" + std::to_string(agents.process()) + "/root";
  const std::string token = text_of(root + "/var/run/secrets/local-path-provisioner/token");
  REQUIRE_FALSE(token.empty());
  CHECK_FALSE(fs::exists(root + "/var/run/secrets/kubernetes.io"));

  // The API server does not take it, and the account may do nothing there.
  const int api = story.bed->upstream().port;
  const auto api_answer = [&](const std::string& what, const std::string& with) {
    RawClient client(api);
    REQUIRE(client.connected());
    REQUIRE(client.send(what + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + with +
                        "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"));
    return client.answer().status;
  };
  const std::string its_account = account_token(*story.bed, account);
  const std::string ours = "/api/v1/namespaces/local-path-storage/";
  for (const std::string& what :
       {std::string("GET /api/v1/nodes"), std::string("GET /api/v1/pods"), "GET " + ours + "pods",
        "POST " + ours + "pods", "GET " + ours + "secrets/local-path-provisioner-agents-tls",
        "GET " + ours + "configmaps/local-path-config",
        std::string("GET /api/v1/persistentvolumes"),
        std::string("GET /api/v1/persistentvolumeclaims"),
        std::string("POST /apis/authentication.k8s.io/v1/tokenreviews"),
        "POST " + ours + "serviceaccounts/local-path-provisioner-agent/token",
        "DELETE " + ours + "pods/" + pod}) {
    CAPTURE(what);
    CHECK(api_answer(what, token) == 401);
    CHECK(api_answer(what, its_account) == 403);
  }

  // The provisioner takes it for this node's agent only, and nothing less than it.
  const auto answer = [&](const std::string& with, std::string_view target,
                          const std::string& body) {
    RawClient client(agents.port());
    REQUIRE(client.connected());
    return client.ask(std::string(target), with, body);
  };
  const std::string hello = encode(agent::Hello{});
  CHECK(answer("", kHelloTarget, hello).status == 401);
  CHECK(answer(LPP_MUST(request_token(story.admin(), account, {audience})), kHelloTarget, hello)
            .status == 403);
  const k8s::ObjectKey provisioner{kDaemonNamespace, "local-path-provisioner-service-account"};
  CHECK(answer(LPP_MUST(request_token(story.admin(), provisioner, {audience})), kHelloTarget, hello)
            .status == 403);
  CHECK(answer(its_account, kHelloTarget, hello).status == 401);

  // Whoever has it takes the agent's place, and lies about another node.
  LPP_MUST(applied.apply(claim_object({.key = applied.key("kept"), .selected_node = node})));
  const auto kept = LPP_MUST(story.audit.wait_bound(applied.key("kept")));
  write_text(kept.disk + "/data", "a tenant's");
  agents.wait_for_metric("local_path_provisioner_agent_operations 0");
  const Frozen frozen(agents.process());
  const auto welcomed = answer(token, kHelloTarget, hello);
  REQUIRE(welcomed.status == 200);
  const std::string session = LPP_MUST(agent::decode_welcome(welcomed.body)).session;
  const auto tell = [&](agent::Tell what) {
    what.session = session;
    return answer(token, kTellTarget, encode(what)).status;
  };
  std::vector<agent::Base> bases;
  for (const auto& base : story.bed->base_paths()) bases.push_back({.path = base});
  CHECK(tell({.everything = true, .bases = bases}) == 200);
  RawClient poll(agents.port());
  REQUIRE(poll.post(std::string(kPollTarget), token, encode(agent::Poll{.session = session})));
  LPP_MUST(applied.apply(claim_object({.key = applied.key("ours"), .selected_node = node})));
  const auto orders = LPP_MUST(agent::decode_orders(poll.answer().body)).orders;
  REQUIRE(orders.size() == 1);
  REQUIRE(orders[0].operation);
  operation::Operation lie = *orders[0].operation;
  lie.node = "elsewhere";
  lie.volume_name = kept.pv;
  lie.path = kept.path;
  for (const auto kind : {operation::Kind::kMake, operation::Kind::kRemove}) {
    lie.kind = kind;
    // That is left out, and the rest is heard.
    CHECK(tell({.works = {{.operation = lie,
                           .progress = {.state = operation::Progress::State::kSucceeded}}}}) ==
          200);
  }
  agents.wait_for_metric(R"(local_path_provisioner_agent_refused_total{reason="foreign"} 2)");
  // Work that nobody has ordered counts below the node's base paths only.
  operation::Operation unasked = *orders[0].operation;
  for (const auto state :
       {operation::Progress::State::kRunning, operation::Progress::State::kSucceeded}) {
    ++unasked.attempt;
    unasked.path = "/etc";
    CHECK(tell({.works = {{.operation = unasked, .progress = {.state = state}}}}) == 200);
    ++unasked.attempt;
    unasked.base_path = "/";
    CHECK(tell({.works = {{.operation = unasked, .progress = {.state = state}}}}) == 200);
    unasked.base_path = orders[0].operation->base_path;
  }
  agents.wait_for_metric(R"(local_path_provisioner_agent_refused_total{reason="unbelievable"} 4)");
  CHECK(LPP_MUST(story.audit.bound_volume(applied.key("kept"))).pv == kept.pv);

  // The agent itself ends that, and does the work.
  frozen.thaw();
  const auto volume = LPP_MUST(story.audit.wait_bound(applied.key("ours")));
  CHECK(tell({}) == 410);
  CHECK(text_of(kept.disk + "/data") == "a tenant's");
  CHECK_FALSE(agents.made_helper_pods());
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_deleted(applied.key("kept"), kept));
  LPP_MUST(story.audit.wait_deleted(applied.key("ours"), volume));
  wait_nothing_on_record(story);
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
