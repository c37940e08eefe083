// lpp-rights MANIFEST... -- RECORD...: compares what the roles of the manifests grant with what was
// used while tests ran (devcluster::Rbac::used(), one line each), and fails when they grant more or
// less. Without a record of the crash tests, say, it would find rights missing: all must be there.

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/yaml_objects.h"

namespace {

using nlohmann::json;

/// Every grant of a role, in the words of Rbac::used().
void add_grants(const json& role, std::set<std::string>& grants) {
  const std::string kind = role["kind"];
  const std::string ns = role["metadata"].value("namespace", "-");
  for (const json& rule : role["rules"]) {
    for (const std::string group : rule["apiGroups"]) {
      for (const std::string resource : rule["resources"]) {
        for (const std::string verb : rule["verbs"]) {
          for (const std::string name : rule.value("resourceNames", json::array({"*"}))) {
            std::string line = kind;
            for (const auto& word : {ns, group.empty() ? "core" : group, resource, verb, name}) {
              line.append(" ").append(word);
            }
            grants.insert(std::move(line));
          }
        }
      }
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
  for (const std::string& arg : args) {
    if (arg == "--") {
      records = true;
    } else if (records) {
      std::ifstream in(arg);
      if (!in) return fail(arg + " is missing: run the tests that write it");
      for (std::string line; std::getline(in, line);) used.insert(line);
    } else {
      const auto objects = lpp::testing::read_yaml_objects(arg);
      if (!objects.ok()) return fail(objects.error().message);
      for (const json& object : *objects) {
        const std::string kind = object.value("kind", "");
        if (kind == "Role" || kind == "ClusterRole") add_grants(object, granted);
      }
    }
  }
  if (granted.empty() || used.empty()) return fail("usage: MANIFEST... -- RECORD...");
  int result = 0;
  for (const std::string& grant : granted) {
    if (!used.contains(grant)) result = fail("granted, but no test needed it: " + grant);
  }
  for (const std::string& grant : used) {
    if (!granted.contains(grant)) result = fail("needed, but not granted: " + grant);
  }
  if (result == 0) std::cout << "rights: " << granted.size() << " are granted, and each is used\n";
  return result;
}
