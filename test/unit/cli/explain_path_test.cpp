// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cli_bed.h"
#include "fakes/builders.h"

namespace lpp::cli::explain_path {

using namespace lpp::testing;

namespace {

constexpr const char* kClaim = R"(kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: data, namespace: web, labels: {app: shop}}
spec: {storageClassName: local-path, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
)";
constexpr const char* kClass = R"(kind: StorageClass
apiVersion: storage.k8s.io/v1
metadata: {name: local-path}
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
)";
constexpr const char* kConfig = R"({"nodePathMap": [
  {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/opt/a"]},
  {"node": "n2", "paths": ["/mnt/x", "/mnt/y"]},
  {"node": "n3", "paths": []}]})";

struct Files : CliBed {
  Files() {
    files["claim.yaml"] = kClaim;
    files["class.yaml"] = kClass;
    files["config.json"] = kConfig;
  }
  Outcome explain(std::vector<std::string> more) {
    std::vector<std::string> all{"explain-path", "web/data",   "-f",       "claim.yaml",
                                 "-f",           "class.yaml", "--config", "config.json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
};

}  // namespace

TEST_CASE("explain-path tells each step from files alone") {
  Files bed;
  const auto outcome = bed.explain({"--node", "n1"});
  CHECK(outcome.err.empty());
  CHECK(outcome.code == 0);
  CHECK(bed.connected_with.empty());
  CHECK(outcome.out ==
        R"(claim:         web/data (1Gi)
class:         local-path
node:          n1 (by --node)
config.json:   nodePathMap, entry DEFAULT_PATH_FOR_NON_LISTED_NODES: /opt/a
base path:     /opt/a (the only path)
directory:     pvc-<uid>_web_data (<volume>_<namespace>_<claim>: no pathPattern)
volume:        hostPath, usable on nodes with kubernetes.io/hostname=n1
path:          /opt/a/pvc-<uid>_web_data
)");
}

TEST_CASE("with mostFree the path is said to be known on the nodes only") {
  Files bed;
  bed.files["class.yaml"] = std::string(kClass) + "parameters: {pathSelection: mostFree}\n";
  CHECK(bed.explain({"--node", "n2"}).out.find("the one with most free space is taken") !=
        std::string::npos);
}

TEST_CASE("the steps show entries of nodes, several paths, patterns and owners") {
  Files bed;
  bed.files["class.yaml"] = std::string(kClass) + R"(parameters:
  pathPattern: "{{ .PVC.Namespace }}/{{ .PVC.Name }}/{{ .PVC.Labels.app }}"
  permPattern: "0750"
  volumeType: local
)";
  const auto outcome = bed.explain({"--node", "n2"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("entry of node n2: /mnt/x /mnt/y") != std::string::npos);
  CHECK(outcome.out.find("one of 2; chosen by the volume's name, which is not known yet") !=
        std::string::npos);
  CHECK(outcome.out.find("pathPattern:   {{ .PVC.Namespace }}/") != std::string::npos);
  CHECK(outcome.out.find("directory:     web/data/shop\n") != std::string::npos);
  CHECK(outcome.out.find("mode:          0750\n") != std::string::npos);
  CHECK(outcome.out.find("volume:        local, usable") != std::string::npos);
}

TEST_CASE("a refusal is told in the reconciler's words, and the exit code is 1") {
  Files bed;
  const auto outcome = bed.explain({"--node", "n3"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("refused:       no local path available on node n3") != std::string::npos);
  bed.files["class.yaml"] = std::string(kClass) + "parameters: {pathPattern: '../{{ .PVName }}'}\n";
  CHECK(bed.explain({"--node", "n1"}).out.find("refused:") != std::string::npos);
}

TEST_CASE("while no node is selected, every node has its line") {
  Files bed;
  bed.files["nodes.yaml"] =
      "kind: Node\nmetadata: {name: n1}\n---\nkind: Node\nmetadata: {name: n3}\n";
  const auto outcome = bed.explain({"-f", "nodes.yaml"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("NODE   PATH\n"
                         "n1     /opt/a/pvc-<uid>_web_data\n"
                         "n3     none: no local path available on node n3\n") != std::string::npos);
  CHECK(bed.explain({}).code == 1);  // no node is known
  CHECK(bed.explain({"-f", "nodes.yaml", "--node", "n9"}).err.find("there is no node n9") !=
        std::string::npos);
}

TEST_CASE("a shared filesystem needs no node; the configuration may come from a ConfigMap") {
  Files bed;
  bed.files["all.yaml"] = std::string(kClaim) + "---\n" + kClass +
                          "---\nkind: ConfigMap\nmetadata: {name: c}\n"
                          "data: {config.json: '{\"sharedFileSystemPath\": \"/nfs\"}'}\n";
  const auto outcome = bed.run({"explain-path", "web/data", "-f", "all.yaml"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("path:          /nfs/pvc-<uid>_web_data\n") != std::string::npos);
  CHECK(outcome.out.find("usable on every node") != std::string::npos);
}

TEST_CASE("machines get the answer too") {
  Files bed;
  const auto out = nlohmann::json::parse(bed.explain({"--node", "n1", "-o", "json"}).out);
  CHECK(out["claim"] == "web/data");
  CHECK(out["answers"][0]["path"] == "/opt/a/pvc-<uid>_web_data");
  CHECK(out["answers"][0]["possible"] == true);
  const auto no = nlohmann::json::parse(bed.explain({"--node", "n3", "-o", "json"}).out);
  CHECK(no["answers"][0]["possible"] == false);
  CHECK(no["answers"][0]["reason"] == "no local path available on node n3");
}

TEST_CASE("what cannot be answered is an error with a reason") {
  Files bed;
  CHECK(bed.run({"explain-path"}).code == 2);
  CHECK(bed.run({"explain-path", "a/b/c", "-f", "claim.yaml"}).code == 2);
  CHECK(bed.run({"explain-path", "web/nope", "-f", "claim.yaml"})
            .err.find("there is no claim web/nope") != std::string::npos);
  CHECK(bed.run({"explain-path", "web/data", "-f", "claim.yaml"})
            .err.find("StorageClass \"local-path\" of the claim does not exist") !=
        std::string::npos);
  CHECK(bed.run({"explain-path", "web/data", "-f", "none.yaml"}).code == 1);
  bed.files["config.json"] = "{";
  CHECK(bed.explain({}).err.find("config.json: line 1") != std::string::npos);
  bed.connect_error = lpp::Error{lpp::ErrorCode::kInvalid, "none"};
  CHECK(bed.run({"explain-path", "web/data"}).code == 1);
}

TEST_CASE("in a cluster, the claim's own node counts, and a volume that overlaps is named") {
  CliBed bed;
  bed.serve(
      "/storageclasses",
      {storage_class().parameter("pathPattern", "{{ .PVC.Namespace }}/{{ .PVC.Name }}").json()});
  bed.serve("/persistentvolumeclaims?", {claim("data").node("n1").json()});
  auto other = volume("pvc-9")
                   .host_path("/opt/a/default/data")
                   .annotation("local.path.provisioner/selected-node", "n1")
                   .node("n1");
  SUBCASE("of ours") {}
  SUBCASE("made by hand") { other.no_annotation("pv.kubernetes.io/provisioned-by"); }
  bed.serve("/persistentvolumes?", {other.json()});
  bed.serve("/nodes?", {testing::node("n1").json()});
  bed.transport->on("GET", "/configmaps/local-path-config").always([](const auto&) {
    return lpp::k8s::Response{
        200,
        config_map("local-path-config")
            .data("config.json", R"({"nodePathMap": [{"node": "n1", "paths": ["/opt/a"]}]})")
            .json()
            .dump(),
        "application/json"};
  });
  bed.serve_nothing_else();
  const auto outcome = bed.run({"explain-path", "data"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("n1 (selected by the scheduler)") != std::string::npos);
  CHECK(outcome.out.find("overlaps the directory /opt/a/default/data of volume pvc-9") !=
        std::string::npos);
}

}  // namespace lpp::cli::explain_path
