// SPDX-License-Identifier: Apache-2.0
// lpp-rights [--user NAME] [--part] [--may-miss] MANIFEST... -- RECORD...: compares what the roles
// of the manifests grant with what was used while tests ran, and fails when they grant more or
// less. A record is what devcluster::Rbac::used() returns, one line each, or the audit log of an
// API server, of which the requests of that user count. Without a record of the crash tests, say,
// it would find rights unused: it ends with 3 when one is not there. --part: there is only a part
// of them.

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "harness/yaml_objects.h"

namespace {

using nlohmann::json;

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// Every grant of a role, in the words of Rbac::used().
void add_grants(const json& role, std::set<std::string>& grants) {
  const std::string kind = role["kind"];
  const std::string ns = role["metadata"].value("namespace", "-");
  for (const json& rule : role["rules"]) {
    for (const std::string group : rule["apiGroups"]) {
      for (const std::string resource : rule["resources"]) {
        for (const std::string verb : rule["verbs"]) {
          for (const std::string name : rule.value("resourceNames", json::array({"*"}))) {
            grants.insert(
                line_of({kind, ns, group.empty() ? "core" : group, resource, verb, name}));
          }
        }
      }
    }
  }
}

struct Access {
  std::string ns;     // "-" for what is in none
  std::string group;  // "core" for ""
  std::string resource;
  std::string verb;
  std::string name;  // "*" for any
};

/// The grants that allow an access, or the access itself when none does.
std::set<std::string> granting(const Access& access, const std::set<std::string>& granted) {
  const std::string ns = "Role " + access.ns;
  std::set<std::string> used;
  for (const std::string& role : {std::string("ClusterRole -"), ns}) {
    for (const std::string& one : {std::string("*"), access.name}) {
      const std::string line = line_of({role, access.group, access.resource, access.verb, one});
      if (granted.contains(line)) used.insert(line);
    }
  }
  if (used.empty()) {
    used.insert(line_of({ns, access.group, access.resource, access.verb, access.name}));
  }
  return used;
}

/// What an entry of an audit log used of the grants: none for what every account may do, and what
/// is missing if that is so. Refusals count too: a test that takes a right away needs it all the
/// same, and admission refuses what is allowed.
std::set<std::string> used_by(const json& entry, const std::set<std::string>& granted) {
  const json ref = entry.value("objectRef", json::object());
  const std::string why =
      entry.value("annotations", json::object()).value("authorization.k8s.io/reason", "");
  if (ref.empty() || why.find("Binding \"system:") != std::string::npos) return {};
  const std::string group = ref.value("apiGroup", "core");
  std::string resource = ref.value("resource", "");
  if (ref.contains("subresource")) resource += "/" + ref["subresource"].get<std::string>();
  const std::string verb = entry.value("verb", "");
  // What is being created has no name yet for who asks for the right.
  const std::string name = verb == "create" ? "*" : ref.value("name", "*");
  return granting({ref.value("namespace", "-"), group, resource, verb, name}, granted);
}

/// The same for a line "denied NAMESPACE GROUP RESOURCE VERB NAME" of Rbac::used().
std::set<std::string> denied_by(const std::string& line, const std::set<std::string>& granted) {
  std::istringstream in(line);
  std::string denied;
  Access access;
  in >> denied >> access.ns >> access.group >> access.resource >> access.verb >> access.name;
  return granting(access, granted);
}

void read_record(std::istream& in, const std::string& user, const std::set<std::string>& granted,
                 std::set<std::string>& used) {
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("denied ")) {
      used.merge(denied_by(line, granted));
    } else if (!line.starts_with("{")) {
      // What a test gives somebody in a tenant's namespace is none of the manifests' business.
      if (!line.starts_with("Role app ")) used.insert(line);
    } else if (line.find(user) != std::string::npos) {  // the log is long, and most is of others
      const json entry = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!entry.is_object() || entry["user"].value("username", "") != user) continue;
      // Somebody asks in the daemon's name, and is told what he lacks.
      if (entry.value("userAgent", "").ends_with(" (command)")) continue;
      used.merge(used_by(entry, granted));
    }
  }
}

int fail(const std::string& text) {
  std::cerr << "rights: " << text << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  std::set<std::string> granted;
  std::set<std::string> used;
  bool records = false;
  bool all = true;
  bool may_miss = false;
  std::string user;
  for (auto next = args.begin(); next != args.end(); ++next) {
    const std::string& arg = *next;
    if (arg == "--") {
      records = true;
    } else if (arg == "--part") {
      all = false;
    } else if (arg == "--may-miss") {
      may_miss = true;
    } else if (arg == "--user" && next + 1 != args.end()) {
      user = *++next;
    } else if (records) {
      std::ifstream in(arg);
      if (!in && may_miss) {
        std::cout << "skipped: rights: " << arg << " is missing: run the tests that write it\n";
        return 3;
      }
      if (!in) return fail(arg + " is missing: run the tests that write it");
      read_record(in, user, granted, used);
    } else {
      const auto objects = lpp::testing::read_yaml_objects(arg);
      if (!objects.ok()) return fail(objects.error().message);
      for (const json& object : *objects) {
        const std::string kind = object.value("kind", "");
        if (kind == "Role" || kind == "ClusterRole") add_grants(object, granted);
      }
    }
  }
  if (granted.empty() || (all && used.empty()))
    return fail("usage: [--user NAME] [--part] [--may-miss] MANIFEST... -- RECORD...");
  int result = 0;
  for (const std::string& grant : granted) {
    if (all && !used.contains(grant)) result = fail("granted, but no test needed it: " + grant);
  }
  for (const std::string& grant : used) {
    if (!granted.contains(grant)) result = fail("needed, but not granted: " + grant);
  }
  if (result == 0) {
    std::cout << "rights: " << granted.size() << " are granted, " << used.size() << " are used\n";
  }
  return result;
}
