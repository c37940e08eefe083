// SPDX-License-Identifier: Apache-2.0
#include "cli/check.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cli/manifests.h"
#include "cli_bed.h"
#include "fakes/builders.h"
#include "places/places.h"

using namespace lpp::testing;
using lpp::cli::Findings;

namespace {

constexpr const char* kConfig =
    R"({"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/opt/a"]},
                        {"node": "n2", "paths": []}]})";

/// "PROBLEM place: message" of each finding.
std::vector<std::string> lines(const Findings& findings) {
  std::vector<std::string> out;
  for (const auto& finding : findings.all) {
    out.push_back((finding.problem ? "PROBLEM " : "WARNING ") + finding.place + ": " +
                  finding.message);
  }
  return out;
}

bool has_line(const Findings& findings, const std::string& start) {
  for (const std::string& line : lines(findings)) {
    if (line.starts_with(start)) return true;
  }
  return false;
}

std::vector<std::string> of_class(const StorageClassBuilder& builder,
                                  const std::string& config = kConfig) {
  Findings findings;
  const auto parsed = lpp::cli::check_config("c", config, findings);
  REQUIRE(parsed.has_value());
  findings.all.clear();
  lpp::cli::check_class(builder.json(), "class", &*parsed, findings);
  return lines(findings);
}

/// The manifest that this project ships.
std::string shipped_manifest() {
  std::string text = repository_text("deploy/local-path-storage.yaml");
  REQUIRE(text.size() > 1000);
  return text;
}

}  // namespace

TEST_CASE("each thing that is wrong in config.json is a finding with its place") {
  Findings findings;
  CHECK_FALSE(lpp::cli::check_config("config.json",
                                     R"({"nodePathMap": [{"node": "", "paths": ["data", "/etc"]}],
                                         "setupComand": "x"})",
                                     findings));
  CHECK(has_line(findings, "PROBLEM config.json: nodePathMap[0].node: must not be empty"));
  CHECK(has_line(findings, "PROBLEM config.json: nodePathMap[0].paths[0]: must be an absolute"));
  CHECK(has_line(findings, "PROBLEM config.json: nodePathMap[0].paths[1]: "));
  CHECK(has_line(findings, "WARNING config.json: unknown key \"setupComand\" is ignored; did you"));
  findings.all.clear();
  CHECK_FALSE(lpp::cli::check_config("config.json", "{\n", findings));
  CHECK(has_line(findings, "PROBLEM config.json: line "));
}

TEST_CASE("each thing that is wrong in helperPod.yaml is a finding with its place") {
  Findings findings;
  lpp::cli::check_template("h",
                           "spec: {containers: [{name: a, imagePullPolicy: Often}], "
                           "hostNetwork: true}",
                           false, findings);
  CHECK(has_line(findings, "PROBLEM h: helper pod template must not set spec.hostNetwork"));
  findings.all.clear();
  lpp::cli::check_template("h", "spec: [", false, findings);
  CHECK(has_line(findings, "PROBLEM h: line "));
}

TEST_CASE("a good class has no findings") {
  CHECK(of_class(storage_class()).empty());
  CHECK(of_class(storage_class()
                     .parameter("nodePath", "/opt/a")
                     .parameter("volumeType", "Local")
                     .parameter("pathPattern", "{{ .PVC.Namespace }}/{{ .PVC.Name }}"))
            .empty());
  CHECK(of_class(storage_class().binding_mode("Immediate"), R"({"sharedFileSystemPath":"/nfs"})")
            .empty());
  CHECK(of_class(storage_class().parameter("nodeAffinityKey", "example.com/machine")).empty());
  CHECK(of_class(storage_class().parameter("nodeAffinityKey", "")).empty());
  CHECK(of_class(storage_class().parameter("volumeType", "local").mount_options({"noatime"}))
            .empty());
}

TEST_CASE("classes that cannot work are problems") {
  using Lines = std::vector<std::string>;
  const auto only = [](const Lines& found, const std::string& start) {
    CAPTURE(found.empty() ? std::string() : found.front());
    return found.size() == 1 && found.front().starts_with(start);
  };
  CHECK(only(of_class(storage_class().binding_mode("Immediate")),
             "PROBLEM class: volumeBindingMode: is Immediate"));
  CHECK(only(of_class(storage_class().unset("", "volumeBindingMode")),
             "PROBLEM class: volumeBindingMode: is Immediate"));
  CHECK(only(of_class(storage_class().parameter("pathPattern", "{{ .PVC.Name | trim }}")),
             "PROBLEM class: parameters.pathPattern: pathPattern:1:"));
  CHECK(only(of_class(storage_class().annotation("permPattern", "{{ .PVC.Nam }}")),
             "WARNING class: a claim without labels and annotations would be refused"));
  CHECK(only(of_class(storage_class().annotation("userPattern", "{{")),
             "PROBLEM class: metadata.annotations.userPattern: "));
  CHECK(only(of_class(storage_class().parameter("volumeType", "block")),
             "PROBLEM class: parameters.volumeType: block is not a volume type"));
  CHECK(only(of_class(storage_class().annotation("defaultVolumeType", "")),
             "PROBLEM class: metadata.annotations.defaultVolumeType: "));
  CHECK(only(of_class(storage_class().mount_options({"noatime"})),
             "PROBLEM class: mountOptions: are refused for hostPath volumes"));
  CHECK(only(of_class(storage_class().parameter("nodeAffinityKey", "no key!")),
             "PROBLEM class: parameters.nodeAffinityKey: \"no key!\" cannot be the key"));
  CHECK(only(of_class(storage_class().parameter("nodePath", "/opt/b")),
             "PROBLEM class: parameters.nodePath: no node has the path /opt/b"));
  CHECK(only(of_class(storage_class().parameter("volumeType", "local"),
                      R"({"sharedFileSystemPath":"/nfs"})"),
             "PROBLEM class: parameters.volumeType: local needs a node"));
  CHECK(only(of_class(storage_class().parameter("quota", "soft")),
             "PROBLEM class: parameter quota of StorageClass"));
  CHECK(only(of_class(storage_class().parameter("pathSelection", "best")),
             "PROBLEM class: parameter pathSelection of StorageClass"));
  CHECK(only(of_class(storage_class().parameter("quota", "hard"),
                      R"({"sharedFileSystemPath":"/nfs","setupCommand":"/x"})"),
             "PROBLEM class: parameters: quota, reserve and overcommit need paths"));
  CHECK(only(
      of_class(storage_class(), R"({"storageClassConfigs":{"x":{"sharedFileSystemPath":"/n"}}})"),
      "PROBLEM class: the configuration has no paths for this class"));
}

TEST_CASE("a class with limits needs a setup command that knows them") {
  const auto limited =
      storage_class().parameter("quota", "hard").parameter("pathSelection", "mostFree");
  const std::string paths =
      R"({"nodePathMap":[{"node":"DEFAULT_PATH_FOR_NON_LISTED_NODES","paths":["/opt/a"]}])";
  CHECK(of_class(limited, paths + R"(,"setupCommand":"/usr/bin/local-path-node"})").empty());
  const auto without = of_class(limited, paths + "}");
  REQUIRE(without.size() == 1);
  CHECK(without[0].starts_with("WARNING class: parameters: quota, reserve and overcommit need a"));
}

TEST_CASE("classes that will surprise are warnings") {
  CHECK(of_class(storage_class().set("/allowVolumeExpansion", true)).empty());
  CHECK(of_class(storage_class().parameter("nodepath", "/x"))
            .front()
            .starts_with("WARNING class: parameters.nodepath: is not a parameter"));
  CHECK(of_class(storage_class().parameter("allowUnsafePathPattern", "yes"))
            .front()
            .starts_with("WARNING class: parameters.allowUnsafePathPattern: yes counts as false"));
  CHECK(of_class(storage_class().parameter("pathPattern", "{{ .PVC.Name }}/x"))
            .front()
            .starts_with("WARNING class: a claim without labels and annotations would be refused: "
                         "pathPattern gives"));
}

TEST_CASE("namespaces in which helper pods would be refused are problems") {
  const auto found = [](const std::string& level) {
    Findings findings;
    nlohmann::json labels = nlohmann::json::object();
    if (!level.empty()) labels["pod-security.kubernetes.io/enforce"] = level;
    lpp::cli::check_namespace({{"metadata", {{"labels", labels}}}}, "ns", findings);
    return findings.all.size();
  };
  CHECK(found("") == 0);
  CHECK(found("privileged") == 0);
  CHECK(found("baseline") == 1);
  CHECK(found("restricted") == 1);
}

TEST_CASE("nodes without a path and entries without a node are warnings") {
  Findings findings;
  const auto config = lpp::cli::check_config(
      "c",
      R"({"nodePathMap": [{"node": "n1", "paths": ["/a"]}, {"node": "n2", "paths": []},
                          {"node": "n9", "paths": ["/a"]}]})",
      findings);
  REQUIRE(config.has_value());
  findings.all.clear();
  lpp::cli::check_nodes(*config, {"n1", "n2", "n3"}, {"a", "b"}, "c", findings);
  CHECK(lines(findings) ==
        std::vector<std::string>{
            "WARNING c: nodePathMap: 2 of 3 nodes have no path for class a, b: n2, n3",
            "WARNING c: nodePathMap: there is no node n9"});
}

TEST_CASE("the shipped manifest has no findings") {
  CliBed bed;
  bed.files["m.yaml"] = shipped_manifest();
  const auto outcome = bed.run({"check", "--strict", "-f", "m.yaml"});
  CHECK(outcome.err.empty());
  CHECK(outcome.code == 0);
  CHECK(outcome.out ==
        "Checked:   config.json, helperPod.yaml, Namespace local-path-storage, StorageClass "
        "local-path\nResult:    ok\n");
  CHECK(bed.connected_with.empty());
}

TEST_CASE("the rights that are checked are those that the shipped manifest grants") {
  std::set<std::string> granted;
  const auto objects = lpp::cli::read_manifest(shipped_manifest(), "m");
  REQUIRE(objects.ok());
  for (const auto& one : *objects) {
    const auto kind = one.object["kind"].get<std::string>();
    if (kind != "Role" && kind != "ClusterRole") continue;
    for (const auto& rule : one.object["rules"]) {
      for (const auto& group : rule["apiGroups"]) {
        for (const auto& resource : rule["resources"]) {
          for (const auto& verb : rule["verbs"]) {
            granted.insert(kind + " " + group.get<std::string>() + "/" +
                           resource.get<std::string>() + " " + verb.get<std::string>());
          }
        }
      }
    }
  }
  std::set<std::string> checked;
  for (const auto& right : lpp::cli::needed_rights()) {
    checked.insert(std::string(right.in_namespace ? "Role " : "ClusterRole ") +
                   std::string(right.group) + "/" + std::string(right.resource) + " " +
                   std::string(right.verb));
  }
  CHECK(checked == granted);
}

TEST_CASE("findings are shown with place and fix; problems come first and set the exit code") {
  CliBed bed;
  bed.files["m.yaml"] =
      "kind: StorageClass\nmetadata: {name: a}\nprovisioner: rancher.io/local-path\n"
      "parameters: {nodepath: /x}\nvolumeBindingMode: WaitForFirstConsumer\n---\n"
      "kind: Namespace\nmetadata: {name: local-path-storage, labels: "
      "{pod-security.kubernetes.io/enforce: baseline}}\n---\n"
      "kind: StorageClass\nmetadata: {name: other}\nprovisioner: x.io/y\nparameters: {a: b}\n";
  const auto outcome = bed.run({"check", "-f", "m.yaml"});
  CHECK(outcome.code == 1);
  CHECK(
      outcome.out ==
      R"(PROBLEM:   m.yaml:7: Namespace local-path-storage: metadata.labels["pod-security.kubernetes.io/enforce"]
           is baseline: helper pods use hostPath volumes and would be refused
           fix: set it to privileged (kubectl label --overwrite namespace local-path-storage pod-security.kubernetes.io/enforce=privileged); the daemon itself keeps to "restricted"

WARNING:   m.yaml:1: StorageClass a: parameters.nodepath
           is not a parameter of this provisioner and has no effect
           fix: did you mean nodePath?

Checked:   StorageClass a, Namespace local-path-storage
Result:    1 problem, 1 warning
)");
  const auto json = nlohmann::json::parse(bed.run({"check", "-f", "m.yaml", "-o", "json"}).out);
  CHECK(json["ok"] == false);
  CHECK(json["problems"] == 1);
  CHECK(json["findings"].size() == 2);
  CHECK(json["findings"][0]["severity"] == "warning");
  CHECK(json["findings"][0]["fix"] == "did you mean nodePath?");
}

TEST_CASE("warnings are problems only when they are to be strict") {
  CliBed bed;
  bed.files["c.json"] = R"({"nodePathMap": [{"node": "n", "paths": ["/a"]}], "x": 1})";
  CHECK(bed.run({"check", "--config", "c.json"}).code == 0);
  CHECK(bed.run({"check", "--config", "c.json", "--strict"}).code == 1);
}

TEST_CASE("files that cannot be read, and wrong usage") {
  CliBed bed;
  CHECK(bed.run({"check", "-f", "none.yaml"}).code == 1);
  CHECK(bed.run({"check", "-f", "none.yaml"}).out.find("no such file") != std::string::npos);
  bed.files["bad.yaml"] = "a: [";
  CHECK(bed.run({"check", "-f", "bad.yaml"}).out.find("line ") != std::string::npos);
  CHECK(bed.run({"check", "file.yaml"}).code == 2);
  CHECK(bed.run({"check", "-o", "xml"}).code == 2);
}

TEST_CASE("a check that has checked nothing is not well") {
  CliBed bed;
  bed.files["class.yaml"] =
      "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: a}\n"
      "provisioner: rancher.io/local-path\nvolumeBindingMode: WaitForFirstConsumer\n";
  const auto mistyped =
      bed.run({"check", "--strict", "-f", "class.yaml", "--provisioner-name", "rancher.io/lokal"});
  CHECK(mistyped.code == 1);
  CHECK(mistyped.out.find("no StorageClass in the files names") != std::string::npos);
  CHECK(bed.run({"check", "--strict", "-f", "class.yaml"}).code == 0);
}

TEST_CASE("problems and a cluster that is not reached have exit codes of their own") {
  CliBed bed;
  bed.connect_error = lpp::Error{lpp::ErrorCode::kUnavailable, "no answer"};
  CHECK(bed.run({"check"}).code == 3);
}

TEST_CASE("a file that cannot be read is named once, and formats may follow -o at once") {
  CliBed bed;
  const auto outcome = bed.run({"check", "-f", "none.yaml"});
  const auto first = outcome.out.find("none.yaml");
  REQUIRE(first != std::string::npos);
  CHECK(outcome.out.find("none.yaml: ") == std::string::npos);
  CHECK(bed.run({"check", "-ojson", "-f", "none.yaml"}).out.starts_with("{"));
}
