// SPDX-License-Identifier: Apache-2.0
#include "helperpod/manifest.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "fakes/operations.h"
#include "k8s/names.h"
#include "unit/helperpod/manifest_fixture.h"

namespace lpp::helperpod {
namespace {

using nlohmann::json;
using operation::Kind;
using operation::Operation;
using namespace manifest_fixture;

std::string env_of(const json& pod, std::string_view name) {
  std::string value = "(absent)";
  for (const auto& entry : pod["spec"]["containers"][0]["env"]) {
    if (entry["name"] == name) value = entry["value"];
  }
  return value;
}

json as_json(const char* text) { return json::parse(text); }

TEST_CASE("a helper pod is the template plus what rule B6.2 adds, field by field") {
  json pod = build(load(kSimple), create(), settings());
  const json record = json::parse(
      pod["metadata"]["annotations"]["local.path.provisioner/operation"].get<std::string>());
  CHECK(record == as_json(R"({
    "action": "create", "volume": "pvc-1", "claimNamespace": "default", "claimName": "data",
    "ownerUid": "uid-1", "storageClass": "local-path", "node": "n1", "basePath": "/opt/lp",
    "path": "/opt/lp/pvc-1_default_data", "sizeBytes": 1024, "volumeMode": "Filesystem",
    "user": "1000", "group": "2000", "perm": "0750", "attempt": 1})"));
  pod["metadata"]["annotations"].erase("local.path.provisioner/operation");

  json expected = as_json(R"({
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
      "name": "helper-pod-create-pvc-1",
      "namespace": "local-path-storage",
      "labels": {
        "app.kubernetes.io/managed-by": "local-path-provisioner",
        "local.path.provisioner/provisioner": "",
        "local.path.provisioner/action": "create"
      },
      "annotations": {
        "local.path.provisioner/volume": "pvc-1",
        "local.path.provisioner/claim": "default/data"
      }
    },
    "spec": {
      "nodeName": "n1",
      "serviceAccountName": "local-path-provisioner-service-account",
      "automountServiceAccountToken": false,
      "restartPolicy": "Never",
      "activeDeadlineSeconds": 90,
      "priorityClassName": "system-node-critical",
      "tolerations": [
        {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"}
      ],
      "containers": [{
        "name": "helper-pod",
        "image": "docker.io/library/busybox",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "command": ["/bin/sh", "/script/setup"],
        "args": ["-p", "/opt/lp/pvc-1_default_data", "-s", "1024", "-m", "Filesystem",
                 "-a", "create"],
        "env": [
          {"name": "VOL_DIR", "value": "/opt/lp/pvc-1_default_data"},
          {"name": "VOL_MODE", "value": "Filesystem"},
          {"name": "VOL_SIZE_BYTES", "value": "1024"},
          {"name": "VOL_USER", "value": "1000"},
          {"name": "VOL_GROUP", "value": "2000"},
          {"name": "VOL_PERM", "value": "0750"}
        ],
        "volumeMounts": [
          {"name": "script", "mountPath": "/script"},
          {"name": "data", "mountPath": "/opt/lp/"}
        ]
      }],
      "volumes": [
        {"name": "script", "configMap": {
          "name": "local-path-config",
          "items": [{"key": "setup", "path": "setup"}, {"key": "teardown", "path": "teardown"}]}},
        {"name": "data", "hostPath": {"path": "/opt/lp/", "type": "DirectoryOrCreate"}}
      ]
    }
  })");
  expected["metadata"]["labels"][std::string(kProvisionerLabel)] =
      short_hash("rancher.io/local-path");
  CHECK_MESSAGE(pod == expected, json::diff(expected, pod).dump(1));
}

TEST_CASE("a helper pod that deletes runs teardown and hands over no owner or mode") {
  Operation operation = create();
  operation.kind = Kind::kRemove;
  const json pod = build(load(kSimple), operation, settings());
  const json& container = pod["spec"]["containers"][0];
  CHECK(pod["metadata"]["name"] == "helper-pod-delete-pvc-1");
  CHECK(pod["metadata"]["labels"]["local.path.provisioner/action"] == "delete");
  CHECK(container["command"] == json::array({"/bin/sh", "/script/teardown"}));
  CHECK(container["args"].back() == "delete");
  CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/pvc-1_default_data");
  CHECK(env_of(pod, "VOL_SIZE_BYTES") == "1024");
  CHECK(env_of(pod, "VOL_USER").empty());
  CHECK(env_of(pod, "VOL_GROUP").empty());
  CHECK(env_of(pod, "VOL_PERM").empty());
}

TEST_CASE("the work is told which limits it has to set and to keep to, where there are any") {
  Operation operation = create();
  const auto names = [](const json& pod) {
    std::vector<std::string> all;
    for (const json& entry : pod["spec"]["containers"][0]["env"]) all.push_back(entry["name"]);
    return all;
  };
  const auto plain = names(build(load(kSimple), operation, settings()));
  CHECK(std::find(plain.begin(), plain.end(), "VOL_QUOTA") == plain.end());
  CHECK(std::find(plain.begin(), plain.end(), "VOL_REQUIRE_MOUNT") == plain.end());
  SUBCASE("that its disk must be there") {
    operation.require_mount = true;
    CHECK(env_of(build(load(kSimple), operation, settings()), "VOL_REQUIRE_MOUNT") == "true");
  }
  SUBCASE("all") {
    operation.limits = {.hard = true, .inodes = 9, .reserve = "10%", .overcommit = false};
    const json pod = build(load(kSimple), operation, settings());
    CHECK(env_of(pod, "VOL_QUOTA") == "hard");
    CHECK(env_of(pod, "VOL_QUOTA_INODES") == "9");
    CHECK(env_of(pod, "VOL_RESERVE") == "10%");
    CHECK(env_of(pod, "VOL_OVERCOMMIT") == "false");
  }
  SUBCASE("one") {
    operation.limits.reserve = "$(X)1Gi";
    const json pod = build(load(kSimple), operation, settings());
    CHECK(env_of(pod, "VOL_QUOTA") == "none");
    CHECK(env_of(pod, "VOL_RESERVE") == "$$(X)1Gi");
    CHECK(names(pod).size() == plain.size() + 2);
  }
}

TEST_CASE("a helper pod that resizes runs the third script, which no other one is shown") {
  Operation operation = create();
  const auto scripts = [&](const ManifestSettings& used) {
    std::vector<std::string> keys;
    const json pod = build(load(kSimple), operation, used);
    for (const json& volume : pod["spec"]["volumes"]) {
      if (volume["name"] != "script") continue;
      for (const json& item : volume["configMap"]["items"]) keys.push_back(item["key"]);
    }
    return keys;
  };
  CHECK(scripts(settings()) == std::vector<std::string>{"setup", "teardown"});
  operation.kind = Kind::kResize;
  CHECK(scripts(settings()) == std::vector<std::string>{"setup", "teardown", "resize"});
  const json pod = build(load(kSimple), operation, settings());
  const json& container = pod["spec"]["containers"][0];
  CHECK(pod["metadata"]["name"] == "helper-pod-resize-pvc-1");
  CHECK(pod["metadata"]["labels"]["local.path.provisioner/action"] == "resize");
  CHECK(container["command"] == json::array({"/bin/sh", "/script/resize"}));
  CHECK(container["args"].back() == "resize");
  CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/pvc-1_default_data");
  CHECK(env_of(pod, "VOL_SIZE_BYTES") == "1024");
  CHECK(env_of(pod, "VOL_USER").empty());
  ManifestSettings own = settings();
  own.resize_command = "/bin/resize";
  CHECK(build(load(kSimple), operation, own)["spec"]["containers"][0]["command"] ==
        json::array({"/bin/resize"}));
  CHECK(scripts(own) == std::vector<std::string>{"setup", "teardown"});
}

TEST_CASE("a helper pod resizes on the volume's disk only, and what was made for its claim") {
  Operation operation = create();
  operation.kind = Kind::kResize;
  operation.claim_uid = "uid-made-for";
  operation.disk = "disk-1";
  const json scripted = build(load(kSimple), operation, settings());
  const auto script = scripted["spec"]["containers"][0]["command"].at(2).get<std::string>();
  CHECK(script.find("if ! is_on_disk") != std::string::npos);
  CHECK(script.ends_with("exec /bin/sh /script/resize \"$$@\"\n"));
  ManifestSettings ours = settings();
  ours.resize_command = "/usr/bin/local-path-node";
  const json pod = build(load(kSimple), operation, ours);
  CHECK(env_of(pod, "VOL_DISK") == "disk-1");
  CHECK(env_of(pod, "VOL_CLAIM_UID") == "uid-made-for");
}

TEST_CASE("below folders of a path pattern the base folder is shown once more") {
  Operation operation = create();
  operation.path = "/opt/lp/ns/claim/one";
  const auto mounted = [&](const char* volume_name) {
    const json pod = build(load(kSimple), operation, settings());
    for (const json& volume : pod["spec"]["volumes"]) {
      if (volume["name"] == volume_name) return volume["hostPath"]["path"].get<std::string>();
    }
    return std::string();
  };
  for (const auto action : {Kind::kMake, Kind::kRemove}) {
    operation.kind = action;
    const json pod = build(load(kSimple), operation, settings());
    CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/ns/claim/one");
    CHECK(env_of(pod, "VOL_BASE_DIR") == "/local-path-base");
    CHECK(env_of(pod, "VOL_SUB_DIR") == "ns/claim/one");
    CHECK(mounted("data") == "/opt/lp/ns/claim/");
    CHECK(mounted("local-path-base") == "/opt/lp/");
  }
  operation.base_path.clear();  // not in the configuration any more
  CHECK(mounted("local-path-base").empty());
  operation.base_path = "/opt/lp/ns/claim";  // nothing in between
  CHECK(mounted("local-path-base").empty());
  operation.base_path = "/local-path-base";  // hidden by itself
  operation.path = "/local-path-base/ns/one";
  CHECK(mounted("local-path-base").empty());
}

TEST_CASE("on a disk that took the place of a directory's own no folder of its pattern is made") {
  Operation operation = create();
  operation.path = "/opt/lp/ns/claim/one";
  ManifestSettings beside = settings();
  beside.beside_agents = true;
  const auto shows_base_only = [&](Kind kind, const std::string& disk, const auto& with) {
    operation.kind = kind;
    operation.disk = disk;
    const json pod = build(load(kSimple), operation, with);
    CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/ns/claim/one");
    CHECK(env_of(pod, "VOL_SUB_DIR") == "ns/claim/one");
    const json& volumes = pod["spec"]["volumes"];
    return std::all_of(volumes.begin(), volumes.end(), [](const json& volume) {
      return !volume.contains("hostPath") || volume["hostPath"]["path"] == "/opt/lp/";
    });
  };
  CHECK(shows_base_only(Kind::kRemove, "disk-1", settings()));
  CHECK(shows_base_only(Kind::kMake, "disk-1", settings()));
  CHECK_FALSE(shows_base_only(Kind::kMake, "", beside));
  // A command of somebody's own may count on the folders, and ours makes them.
  ManifestSettings commands = settings();
  commands.setup_command = "/bin/mine";
  CHECK_FALSE(shows_base_only(Kind::kMake, "disk-1", commands));
  commands.setup_command = "/usr/bin/local-path-node";
  CHECK(shows_base_only(Kind::kMake, "disk-1", commands));
  for (const auto kind : {Kind::kRemove, Kind::kTakeBack, Kind::kResize}) {
    CHECK(shows_base_only(kind, "", beside));
    CHECK_FALSE(shows_base_only(kind, "", settings()));
  }
}

TEST_CASE("a template without the optional fields gets the defaults") {
  ManifestSettings s = settings();
  s.deadline = std::chrono::seconds(0);
  const json pod = build(load("spec: {containers: [{}]}"), create(), s);
  const json& spec = pod["spec"];
  CHECK(pod["apiVersion"] == "v1");
  CHECK(pod["kind"] == "Pod");
  CHECK(pod["metadata"]["name"] == "helper-pod-create-pvc-1");
  CHECK(spec["containers"][0]["name"] == "helper-pod");
  CHECK(spec["containers"][0]["image"] == "example.com/busybox:1");
  CHECK_FALSE(spec["containers"][0].contains("imagePullPolicy"));
  CHECK(spec["tolerations"] == as_json(R"([{"key": "node.kubernetes.io/disk-pressure",
                                            "operator": "Exists", "effect": "NoSchedule"}])"));
  CHECK(spec["activeDeadlineSeconds"] == 1);  // 0 is not allowed by the API server
}

TEST_CASE("what a template says is kept where the task does not need otherwise") {
  const json pod = build(load(R"(
metadata:
  name: my-helper
  labels: {team: storage, local.path.provisioner/action: forged}
  annotations: {note: "yes", local.path.provisioner/operation: forged}
spec:
  automountServiceAccountToken: true
  tolerations: []
  imagePullSecrets: [{name: registry}]
  nodeSelector: {disk: ssd}
  securityContext: {seLinuxOptions: {type: spc_t}, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: worker
    image: own/helper:2
    terminationMessagePolicy: File
    resources: {limits: {cpu: 1, memory: 64Mi}}
    env: [{name: HTTP_PROXY, value: http://proxy:3128}, {name: VOL_DIR, value: forged}]
)"),
                         create(), settings());
  CHECK(pod["metadata"]["name"] == "my-helper-create-pvc-1");
  CHECK(pod["metadata"]["labels"]["team"] == "storage");
  CHECK(pod["metadata"]["labels"]["local.path.provisioner/action"] == "create");
  CHECK(pod["metadata"]["annotations"]["note"] == "yes");
  CHECK(pod["metadata"]["annotations"]["local.path.provisioner/operation"] != "forged");
  const json& spec = pod["spec"];
  CHECK(spec["automountServiceAccountToken"] == true);
  CHECK(spec["tolerations"] == json::array());
  CHECK(spec["imagePullSecrets"] == as_json(R"([{"name": "registry"}])"));
  CHECK(spec["nodeSelector"] == as_json(R"({"disk": "ssd"})"));
  CHECK(spec["securityContext"]["seLinuxOptions"]["type"] == "spc_t");
  const json& container = spec["containers"][0];
  CHECK(container["name"] == "worker");
  CHECK(container["image"] == "own/helper:2");
  CHECK(container["terminationMessagePolicy"] == "File");
  CHECK(container["resources"] == as_json(R"({"limits": {"cpu": 1, "memory": "64Mi"}})"));
  CHECK(container["env"][0] == as_json(R"({"name": "HTTP_PROXY", "value": "http://proxy:3128"})"));
  CHECK(container["env"].size() == 7);  // the template's VOL_DIR went
  CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/pvc-1_default_data");
}

TEST_CASE("commands replace the scripts, and the scripts' volume goes when both do") {
  ManifestSettings s = settings();
  SUBCASE("setup only") {
    s.setup_command = "/manager";
    const json pod = build(load(kSimple), create(), s);
    CHECK(pod["spec"]["containers"][0]["command"] == json::array({"/manager"}));
    CHECK(pod["spec"]["volumes"][0]["configMap"]["items"] ==
          as_json(R"([{"key": "teardown", "path": "teardown"}])"));
    Operation removal = create();
    removal.kind = Kind::kRemove;
    CHECK(build(load(kSimple), removal, s)["spec"]["containers"][0]["command"] ==
          json::array({"/bin/sh", "/script/teardown"}));
  }
  SUBCASE("teardown only") {
    s.teardown_command = "/manager";
    const json pod = build(load(kSimple), create(), s);
    CHECK(pod["spec"]["containers"][0]["command"] == json::array({"/bin/sh", "/script/setup"}));
    CHECK(pod["spec"]["volumes"][0]["configMap"]["items"] ==
          as_json(R"([{"key": "setup", "path": "setup"}])"));
  }
  SUBCASE("both") {
    s.setup_command = "/manager";
    s.teardown_command = "/manager";
    const json pod = build(load(kSimple), create(), s);
    CHECK(pod["spec"]["volumes"].size() == 1);
    CHECK(pod["spec"]["volumes"][0]["name"] == "data");
    CHECK(pod["spec"]["containers"][0]["volumeMounts"] ==
          as_json(R"([{"name": "data", "mountPath": "/opt/lp/"}])"));
    CHECK(pod["spec"]["containers"][0]["args"].size() == 8);
  }
}

TEST_CASE("our own program is heard, whatever the template says of where its scripts are") {
  ManifestSettings ours = settings();
  ours.setup_command = ours.teardown_command = ours.resize_command = "/local-path-node";
  ManifestSettings mine = settings();
  mine.setup_command = mine.teardown_command = mine.resize_command = "/bin/mine";
  const auto pod_template = load("spec: {containers: [{terminationMessagePath: /tmp/log}]}");
  for (const auto kind : {Kind::kMake, Kind::kRemove, Kind::kTakeBack, Kind::kResize}) {
    Operation operation = create();
    operation.kind = kind;
    const auto path = [&](const ManifestSettings& with) {
      const json pod = build(pod_template, operation, with);
      return pod["spec"]["containers"][0].value("terminationMessagePath", "");
    };
    CHECK(path(ours).empty());
    CHECK(path(mine) == "/tmp/log");
  }
}

TEST_CASE("the kubelet's variable expansion does not change what a user wrote") {
  Operation operation = create();
  operation.path = "/opt/lp/$(VOL_DIR)$$x$";
  operation.user = "$(USER)";
  const json pod = build(load(kSimple), operation, settings());
  CHECK(pod["spec"]["containers"][0]["args"][1] == "/opt/lp/$$(VOL_DIR)$$$$x$$");
  CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/$$(VOL_DIR)$$$$x$$");
  CHECK(env_of(pod, "VOL_USER") == "$$(USER)");

  // Volume paths are not expanded by anybody.
  operation.path = "/opt/$(A)/b";
  CHECK(build(load(kSimple), operation, settings())["spec"]["volumes"][1]["hostPath"]["path"] ==
        "/opt/$(A)/");
}

TEST_CASE("the pod runs on the operation's node whatever the template says") {
  const auto pod_template = load("spec: {nodeName: other, containers: [{}]}", true);
  Operation operation = create();
  CHECK(build(pod_template, operation, settings())["spec"]["nodeName"] == "n1");
  operation.node.clear();
  CHECK(build(pod_template, operation, settings())["spec"]["nodeName"] == "other");
  CHECK_FALSE(build(load(kSimple), operation, settings())["spec"].contains("nodeName"));
}

TEST_CASE("an unsafe template may mount the data elsewhere, and the paths follow") {
  const auto pod_template = load(R"(
spec:
  serviceAccount: other
  volumes: [{name: tools, hostPath: {path: /opt/tools}}]
  containers:
  - name: helper-pod
    volumeMounts:
    - {name: tools, mountPath: /tools}
    - {name: data, mountPath: /mnt/data/}
    - {name: script, mountPath: /elsewhere}
  - {name: sidecar, image: x, command: [side], args: [car]}
)",
                                 true);
  const json pod = build(pod_template, create(), settings());
  const json& container = pod["spec"]["containers"][0];
  CHECK(container["args"][1] == "/mnt/data/pvc-1_default_data");
  CHECK(env_of(pod, "VOL_DIR") == "/mnt/data/pvc-1_default_data");
  CHECK(container["volumeMounts"] == as_json(R"([{"name": "tools", "mountPath": "/tools"},
    {"name": "data", "mountPath": "/mnt/data/"}, {"name": "script", "mountPath": "/script"}])"));
  CHECK(pod["spec"]["volumes"].size() == 3);
  CHECK(pod["spec"]["volumes"][2]["hostPath"]["path"] == "/opt/lp/");
  CHECK(pod["spec"]["serviceAccountName"] == "local-path-provisioner-service-account");
  CHECK_FALSE(pod["spec"].contains("serviceAccount"));
  CHECK(pod["spec"]["containers"][1] ==
        as_json(R"({"name": "sidecar", "image": "x", "command": ["side"], "args": ["car"]})"));
}

TEST_CASE("a mount of the data or the scripts that does not say where gets its place") {
  for (const char* where : {"", ", mountPath: ''", ", mountPath: null"}) {
    CAPTURE(where);
    const auto mount = [&](const std::string& name) {
      return "{name: " + name + where + ", mountPropagation: HostToContainer}";
    };
    const auto pod_template = load(
        "spec: {containers: [{volumeMounts: [" + mount("data") + ", " + mount("script") + "]}]}",
        true);
    const json pod = build(pod_template, create(), settings());
    CHECK(env_of(pod, "VOL_DIR") == "/opt/lp/pvc-1_default_data");
    CHECK(pod["spec"]["containers"][0]["volumeMounts"] == as_json(R"([
      {"name": "data", "mountPath": "/opt/lp/", "mountPropagation": "HostToContainer"},
      {"name": "script", "mountPath": "/script", "mountPropagation": "HostToContainer"}])"));
  }
}

TEST_CASE("a mount of the template in the way of the data is an error") {
  for (const char* path : {"/opt/lp", "/opt/lp/"}) {
    const auto pod_template = load(
        "spec: {volumes: [{name: a, emptyDir: {}}], containers: "
        "[{volumeMounts: [{name: a, mountPath: " +
            std::string(path) + "}]}]}",
        true);
    const auto pod = make_pod(pod_template, create(), settings());
    REQUIRE_FALSE(pod.ok());
    CHECK(pod.error().is(ErrorCode::kInvalid));
    CHECK(pod.error().message.find("/opt/lp") != std::string::npos);
  }
}

TEST_CASE("a volume below /script is shown elsewhere, because the scripts are mounted there") {
  Operation operation = create();
  for (const char* path : {"/script/v", "/script/a/v"}) {
    operation.path = path;
    const json pod = build(load(kSimple), operation, settings());
    CHECK(env_of(pod, "VOL_DIR") == "/local-path-data/v");
    CHECK(pod["spec"]["containers"][0]["args"][1] == "/local-path-data/v");
    CHECK(pod["spec"]["containers"][0]["volumeMounts"][1]["mountPath"] == "/local-path-data");
    CHECK(pod["spec"]["volumes"][1]["hostPath"]["path"] ==
          std::string(path).substr(0, std::string(path).size() - 1));
  }
  operation.path = "/scripts/v";
  CHECK(env_of(build(load(kSimple), operation, settings()), "VOL_DIR") == "/scripts/v");
}

TEST_CASE("a path without a parent directory or a leaf name is refused") {
  for (const char* path : {"", "/", "/a", "a/b", "/a/", "relative"}) {
    CAPTURE(path);
    Operation operation = create();
    operation.path = path;
    const auto pod = make_pod(load(kSimple), operation, settings());
    REQUIRE_FALSE(pod.ok());
    CHECK(pod.error().is(ErrorCode::kInvalid));
    CHECK(pod.error().message.find("pvc-1") != std::string::npos);
  }
}

TEST_CASE("an operation that is not valid UTF-8 is refused, not a crash") {
  Operation operation = create();
  operation.path = "/opt/lp/\xff";
  const auto pod = make_pod(load(kSimple), operation, settings());
  REQUIRE_FALSE(pod.ok());
  CHECK(pod.error().is(ErrorCode::kInvalid));
}

TEST_CASE("a template of an impossible shape is an error, not a crash") {
  for (const char* text : {R"([])", R"({"spec": []})", R"({"spec": {"containers": [1]}})",
                           R"({"metadata": {"name": 1}, "spec": {"containers": [{}]}})",
                           R"({"spec": {"containers": [{"image": 7}]}})",
                           R"({"spec": {"containers": [{"env": [1]}]}})"}) {
    CAPTURE(text);
    const auto pod = make_pod(Template{as_json(text)}, create(), settings());
    if (!pod.ok()) CHECK(pod.error().is(ErrorCode::kInvalid));
  }
}

TEST_CASE("the selector and the label agree") {
  const json pod = build(load(kSimple), create(), settings());
  const std::string value = pod["metadata"]["labels"][std::string(kProvisionerLabel)];
  CHECK(label_selector("rancher.io/local-path") == std::string(kProvisionerLabel) + "=" + value);
  CHECK(k8s::is_label_value(value));
  CHECK(label_selector("a") != label_selector("b"));
}

}  // namespace
}  // namespace lpp::helperpod
