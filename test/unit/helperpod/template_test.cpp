// SPDX-License-Identifier: Apache-2.0
#include "helperpod/template.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fakes/check_contains.h"
#include "unit/helperpod/manifest_fixture.h"

namespace lpp::helperpod {
namespace {

using manifest_fixture::load;
using nlohmann::json;

constexpr std::string_view kUnless = " unless allow-unsafe-helper-pod-template is enabled";

std::string error_of(std::string_view yaml, bool allow_unsafe = false) {
  const auto result = parse_template(yaml, "helperPod.yaml", allow_unsafe);
  if (result.ok()) return "(accepted) " + result->pod.dump();
  CHECK(result.error().is(ErrorCode::kInvalid));
  CHECK(result.error().message.rfind("helperPod.yaml: ", 0) == 0);
  return result.error().message;
}

bool has_warning(const Template& loaded, std::string_view part) {
  for (const auto& warning : loaded.warnings) {
    if (warning.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string pod_with(const std::string& field) {
  return "spec: {" + field + ", containers: [{name: helper-pod, image: busybox}]}";
}
std::string container_with(const std::string& field) {
  return "spec: {containers: [{name: helper-pod, image: busybox, " + field + "}]}";
}
std::string meta_with(const std::string& field) {
  return "metadata: {" + field + "}\nspec: {containers: [{image: busybox}]}";
}

TEST_CASE("the usual templates load without a word") {
  for (const char* yaml : {
           manifest_fixture::kSimple,  // of the plain manifest
           // of a chart with everything in it
           R"(apiVersion: v1
kind: Pod
metadata:
  name: helper-pod
  namespace: local-path-storage
  annotations:
    sidecar.istio.io/inject: "false"
spec:
  imagePullSecrets:
    - name: registry
  priorityClassName: system-node-critical
  tolerations: []
  containers:
    - name: helper-pod
      image: rancher/mirrored-library-busybox:1.36.1
      imagePullPolicy: IfNotPresent
      resources:
        limits:
          cpu: 500m
          memory: 128Mi
)",
           // printed by kubectl
           R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "helper-pod",
               "creationTimestamp": null}, "spec": {"containers": [{"name": "helper-pod",
               "image": "busybox", "resources": {}}], "dnsPolicy": "ClusterFirst",
               "restartPolicy": "Never"}, "status": {}})",
       }) {
    const auto loaded = load(yaml);
    CHECK(loaded.warnings == std::vector<std::string>{});
    CHECK(loaded.pod["metadata"]["name"] == "helper-pod");
    CHECK_FALSE(loaded.pod.contains("status"));
    CHECK_FALSE(loaded.pod["metadata"].contains("namespace"));
    CHECK_FALSE(loaded.pod["metadata"].contains("creationTimestamp"));
  }
}

TEST_CASE("everything that hardens, places or names a helper pod is allowed and kept") {
  const char* yaml = R"(
metadata:
  name: my.helper-pod
  labels: {app: x, example.com/y: ""}
  annotations: {Example.com/any: "text with spaces"}
spec:
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
  automountServiceAccountToken: true
  dnsConfig: {nameservers: [1.1.1.1]}
  dnsPolicy: None
  enableServiceLinks: false
  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]
  hostUsers: false
  imagePullSecrets: [{name: a}]
  nodeSelector: {kubernetes.io/os: linux}
  os: {name: linux}
  preemptionPolicy: Never
  priority: 100
  priorityClassName: system-node-critical
  resources: {limits: {cpu: 1}}
  runtimeClassName: gvisor
  schedulerName: other
  securityContext:
    appArmorProfile: {type: RuntimeDefault}
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    runAsGroup: 1000
    runAsNonRoot: true
    runAsUser: 1000
    seLinuxOptions: {user: u, role: r, type: t, level: "s0:c1"}
    seccompProfile: {type: Localhost, localhostProfile: p.json}
    supplementalGroups: [1, 2]
  terminationGracePeriodSeconds: 0
  tolerations: [{key: k, operator: Exists, effect: NoExecute, value: v, tolerationSeconds: 30}]
  topologySpreadConstraints: [{maxSkew: 1}]
  containers:
  - name: helper-pod
    image: busybox
    imagePullPolicy: Always
    env: [{name: A, value: b}, {name: EMPTY}]
    resources: {limits: {cpu: 0.5, memory: 64Mi, ephemeral-storage: 1e6}, requests: {cpu: 100m}}
    securityContext:
      allowPrivilegeEscalation: false
      appArmorProfile: {type: RuntimeDefault}
      capabilities: {drop: [ALL], add: []}
      privileged: false
      readOnlyRootFilesystem: true
      runAsGroup: 0
      runAsNonRoot: false
      runAsUser: 0
      seLinuxOptions: {type: spc_t}
      seccompProfile: {type: RuntimeDefault}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    workingDir: /tmp
)";
  const auto loaded = load(yaml);
  CHECK(loaded.warnings == std::vector<std::string>{});
  const json& spec = loaded.pod["spec"];
  CHECK(spec.size() == 21);
  CHECK(spec["securityContext"].size() == 9);
  CHECK(spec["tolerations"][0]["tolerationSeconds"] == 30);
  CHECK(spec["terminationGracePeriodSeconds"] == 0);
  const json& container = spec["containers"][0];
  CHECK(container.size() == 9);
  CHECK(container["securityContext"]["runAsUser"] == 0);
  CHECK(container["securityContext"]["capabilities"]["drop"] == json::array({"ALL"}));
  CHECK(container["resources"]["limits"]["cpu"] == 0.5);
  CHECK(loaded.pod["metadata"]["labels"]["example.com/y"] == "");
}

TEST_CASE("what gives a helper pod more than its task needs is refused by the field's name") {
  struct Case {
    std::string yaml;
    const char* what;
  };
  const std::vector<Case> cases = {
      {pod_with("initContainers: [{name: x}]"), "set spec.initContainers"},
      {pod_with("ephemeralContainers: [{name: x}]"), "set spec.ephemeralContainers"},
      {pod_with("volumes: [{name: x, emptyDir: {}}]"), "set spec.volumes"},
      {pod_with("hostNetwork: true"), "set spec.hostNetwork to true"},
      {pod_with("hostPID: true"), "set spec.hostPID to true"},
      {pod_with("hostIPC: true"), "set spec.hostIPC to true"},
      {pod_with("nodeName: n1"), "set spec.nodeName"},
      {pod_with("serviceAccountName: admin"), "set spec.serviceAccountName"},
      {pod_with("serviceAccount: admin"), "set spec.serviceAccount"},
      {pod_with("resourceClaims: [{name: x}]"), "set spec.resourceClaims"},
      {pod_with("schedulingGates: [{name: x}]"), "set spec.schedulingGates"},
      {pod_with("securityContext: {runAsUser: 0}"), "set spec.securityContext.runAsUser to 0"},
      {pod_with("securityContext: {runAsGroup: 0}"), "set spec.securityContext.runAsGroup to 0"},
      {pod_with("securityContext: {sysctls: [{name: a, value: b}]}"),
       "set spec.securityContext.sysctls"},
      {pod_with("securityContext: {windowsOptions: {hostProcess: true}}"),
       "set spec.securityContext.windowsOptions"},
      {"spec: {containers: [{name: a}, {name: b}]}", "have more than one entry in spec.containers"},
      {container_with("volumeMounts: [{name: x, mountPath: /x}]"),
       "set spec.containers[0].volumeMounts"},
      {container_with("volumeDevices: [{name: x, devicePath: /x}]"),
       "set spec.containers[0].volumeDevices"},
      {container_with("envFrom: [{secretRef: {name: x}}]"), "set spec.containers[0].envFrom"},
      {container_with("env: [{name: A}, {name: B, valueFrom: {secretKeyRef: {name: x}}}]"),
       "set spec.containers[0].env[1].valueFrom"},
      {container_with("lifecycle: {postStart: {exec: {command: [x]}}}"),
       "set spec.containers[0].lifecycle"},
      {container_with("livenessProbe: {exec: {command: [x]}}"),
       "set spec.containers[0].livenessProbe"},
      {container_with("readinessProbe: {exec: {command: [x]}}"),
       "set spec.containers[0].readinessProbe"},
      {container_with("startupProbe: {exec: {command: [x]}}"),
       "set spec.containers[0].startupProbe"},
      {container_with("restartPolicy: Always"), "set spec.containers[0].restartPolicy"},
      {container_with("ports: [{containerPort: 1, hostPort: 1}]"),
       "set spec.containers[0].ports[0].hostPort"},
      {container_with("resources: {claims: [{name: x}]}"),
       "set spec.containers[0].resources.claims"},
      {container_with("securityContext: {privileged: true}"),
       "set spec.containers[0].securityContext.privileged to true"},
      {container_with("securityContext: {allowPrivilegeEscalation: true}"),
       "set spec.containers[0].securityContext.allowPrivilegeEscalation to true"},
      {container_with("securityContext: {capabilities: {add: [SYS_ADMIN]}}"),
       "set spec.containers[0].securityContext.capabilities.add"},
      {container_with("securityContext: {procMount: Unmasked}"),
       "set spec.containers[0].securityContext.procMount"},
      {container_with("securityContext: {windowsOptions: {hostProcess: true}}"),
       "set spec.containers[0].securityContext.windowsOptions"},
      {meta_with("finalizers: [a/b]"), "set metadata.finalizers"},
      {meta_with("ownerReferences: [{name: x}]"), "set metadata.ownerReferences"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.yaml);
    const std::string message = error_of(c.yaml);
    CHECK_MESSAGE(message == "helperPod.yaml: helper pod template must not " + std::string(c.what) +
                                 std::string(kUnless),
                  message);
    CHECK(parse_template(c.yaml, "x", true).ok());  // and only unless
  }
}

TEST_CASE("a refused field is refused however its name and value are written") {
  CHECK_CONTAINS(error_of(pod_with("HostNetwork: true")), "must not set spec.HostNetwork");
  CHECK_CONTAINS(error_of(pod_with("HOSTPID: yes")), "must not set spec.HOSTPID");
  CHECK_CONTAINS(error_of(container_with("SecurityContext: {Privileged: true}")), "must not set");
  CHECK_CONTAINS(error_of(pod_with("hostNetwork: false, HostNetwork: true")), "must not set");
  CHECK_CONTAINS(error_of("a: &a {hostNetwork: true, containers: [{}]}\nspec: *a"), "must not set");
  CHECK_CONTAINS(error_of("a: &a {hostNetwork: true}\nspec: {<<: *a, containers: [{}]}"),
                 "must not set");
  CHECK_CONTAINS(error_of(pod_with("hostNetwork: 'true'")), "must not set");
  CHECK_CONTAINS(error_of(pod_with("securityContext: {runAsUser: 0.0}")), "must not set");
  CHECK_CONTAINS(error_of(pod_with("securityContext: {runAsUser: -0}")), "must not set");
}

TEST_CASE("a refused field that says nothing is left out, one that says no stays") {
  const auto loaded = load(R"(
spec:
  hostNetwork: false
  hostPID:
  nodeName: ""
  volumes: []
  initContainers: null
  containers:
  - volumeMounts: []
    envFrom:
    lifecycle: {}
    securityContext: {privileged: false, allowPrivilegeEscalation: false, capabilities: {add: []}}
)");
  CHECK(loaded.warnings.empty());
  CHECK(loaded.pod["spec"].size() == 2);
  CHECK(loaded.pod["spec"]["hostNetwork"] == false);
  // Without it the container could gain privileges: the default is true.
  CHECK(loaded.pod["spec"]["containers"][0] == json::parse(R"({"name": "helper-pod",
    "securityContext": {"allowPrivilegeEscalation": false, "privileged": false,
                        "capabilities": {}}})"));
}

TEST_CASE("field names match without regard to case, the exact spelling first") {
  const auto loaded = load(R"(
Metadata: {Name: my-pod}
SPEC:
  Containers: [{Image: a, image: b, IMAGE: c}]
)");
  CHECK(loaded.pod["metadata"]["name"] == "my-pod");
  CHECK(loaded.pod["spec"]["containers"][0]["image"] == "b");
  CHECK_FALSE(loaded.pod.contains("SPEC"));
}

TEST_CASE("unknown fields are left out with a warning, and kept in an unsafe template") {
  const char* yaml = R"(
metadata: {name: a, colour: red}
spec: {futureField: {x: 1}, containers: [{image: a, imagePulPolicy: Always}]}
extra: 1
)";
  const auto safe = load(yaml);
  CHECK(has_warning(safe, "helperPod.yaml: metadata.colour is not known"));
  CHECK(has_warning(safe, "spec.futureField is not known"));
  CHECK(has_warning(safe, "spec.containers[0].imagePulPolicy is not known"));
  CHECK(has_warning(safe, "extra is not known"));
  CHECK(safe.pod["spec"].size() == 1);
  CHECK(load(yaml, true).pod["spec"]["futureField"]["x"] == 1);
}

TEST_CASE("what the provisioner sets itself is taken out with a warning") {
  const auto loaded = load(R"(
kind: Deployment
spec:
  restartPolicy: Always
  activeDeadlineSeconds: 5
  containers: [{image: a, command: [x], args: [y]}]
)");
  CHECK(has_warning(loaded, "spec.containers[0].command is set by the provisioner"));
  CHECK(has_warning(loaded, "spec.containers[0].args is set by the provisioner"));
  CHECK(has_warning(loaded, "spec.activeDeadlineSeconds is set by the provisioner"));
  CHECK(has_warning(loaded, "spec.restartPolicy is always Never"));
  CHECK(has_warning(loaded, "kind is \"Deployment\""));
  CHECK_FALSE(loaded.pod["spec"]["containers"][0].contains("command"));
}

TEST_CASE("wrong types and values are errors that name the field, in unsafe templates too") {
  struct Case {
    std::string yaml;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"", "the text is empty"},
      {"~", "the text is empty"},
      {"[]", "a Pod is needed, is a list"},
      {"just text", "a Pod is needed, is \"just text\""},
      {"a: [", "line 1, column "},
      {"{}", "spec.containers must hold a container"},
      {"spec: {}", "spec.containers must hold a container"},
      {"spec: {containers: []}", "spec.containers must hold a container"},
      {"spec: {containers: }", "spec.containers must hold a container"},
      {"spec: []", "spec must be a mapping, is a list"},
      {"spec: {containers: {}}", "spec.containers must be a list, is a mapping"},
      {"spec: {containers: [~]}", "spec.containers[0] must not be null"},
      {"spec: {containers: [x]}", "spec.containers[0] must be a mapping, is \"x\""},
      {"metadata: x\nspec: {containers: [{}]}", "metadata must be a mapping"},
      {meta_with("name: 5"), "metadata.name must be a string, is 5 (put it in quotes)"},
      {meta_with("name: Bad_Name"), "metadata.name must be lower-case letters"},
      {meta_with("name: '-x'"), "metadata.name must be lower-case letters"},
      {meta_with("labels: {a: yes}"),
       "metadata.labels[\"a\"] must be a string, is true (put it in quotes)"},
      {meta_with("labels: {a: 'x y'}"), "metadata.labels[\"a\"] must be at most 63"},
      {meta_with("labels: {'a b': x}"), "metadata.labels[\"a b\"]: the key is not"},
      {meta_with("labels: {'a/': x}"), "the key is not a qualified name"},
      {meta_with("labels: [a]"), "metadata.labels must be a mapping"},
      {meta_with("annotations: {a: 1}"), "metadata.annotations[\"a\"] must be a string, is 1"},
      {meta_with("annotations: {a: {b: c}}"), "metadata.annotations[\"a\"] must be a string, is a"},
      {meta_with("annotations: {'/a': b}"), "metadata.annotations[\"/a\"]: the key"},
      {pod_with("nodeSelector: {disk: on}"),
       "spec.nodeSelector[\"disk\"] must be a string, is true"},
      {pod_with("priority: high"), "spec.priority must be an integer, is \"high\""},
      {pod_with("priority: 1.5"), "spec.priority must be an integer, is 1.5"},
      {pod_with("hostUsers: 'no'"), "spec.hostUsers must be true or false, is \"no\""},
      {pod_with("tolerations: x"), "spec.tolerations must be a list"},
      {pod_with("tolerations: [{key: 1}]"), "spec.tolerations[0].key must be a string, is 1"},
      {pod_with("imagePullSecrets: [a]"), "spec.imagePullSecrets[0] must be a mapping"},
      {pod_with("securityContext: []"), "spec.securityContext must be a mapping"},
      {pod_with("securityContext: {runAsUser: root}"),
       "spec.securityContext.runAsUser must be an integer"},
      {"spec: {containers: [{image: 7}]}", "spec.containers[0].image must be a string, is 7"},
      {"spec: {containers: [{name: Bad}]}", "spec.containers[0].name must be at most 63"},
      {container_with("imagePullPolicy: Sometimes"),
       "spec.containers[0].imagePullPolicy has the unknown value \"Sometimes\""},
      {container_with("terminationMessagePolicy: x"), "terminationMessagePolicy has the unknown"},
      {container_with("env: {A: b}"), "spec.containers[0].env must be a list"},
      {container_with("env: [{value: x}]"), "spec.containers[0].env[0].name must not be empty"},
      {container_with("env: [{name: A, value: 5}]"),
       "spec.containers[0].env[0].value must be a string, is 5 (put it in quotes)"},
      {container_with("resources: {limits: {cpu: lots}}"),
       "spec.containers[0].resources.limits.cpu must be a quantity such as 100m or 64Mi, is "
       "\"lots\""},
      {container_with("resources: {limits: {memory: [1]}}"), "limits.memory must be a quantity"},
      {container_with("resources: {limits: {memory: 64mb}}"), "limits.memory must be a quantity"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.yaml);
    for (const bool allow_unsafe : {false, true}) {
      const std::string message = error_of(c.yaml, allow_unsafe);
      CHECK_CONTAINS(message, c.says);
    }
  }
}

TEST_CASE("an unsafe template may not take what the provisioner adds") {
  CHECK_CONTAINS(error_of(pod_with("volumes: [{name: a}, {name: data, emptyDir: {}}]"), true),
                 "spec.volumes[1].name: \"data\" is the name of a volume");
  CHECK_CONTAINS(error_of(pod_with("volumes: [{name: script, emptyDir: {}}]"), true),
                 "spec.volumes[0].name: \"script\"");
  CHECK_CONTAINS(error_of(container_with("volumeMounts: [{name: a, mountPath: /script/}]"), true),
                 "spec.containers[0].volumeMounts[0].mountPath: /script is where");
  CHECK_CONTAINS(error_of(container_with("volumeMounts: [{name: data, mountPath: /}]"), true),
                 "spec.containers[0].volumeMounts[0].mountPath must be absolute");
  CHECK_CONTAINS(error_of(container_with("volumeMounts: [{name: data, mountPath: x}]"), true),
                 "spec.containers[0].volumeMounts[0].mountPath must be absolute");
  CHECK_CONTAINS(error_of("spec: {containers: [{name: a}, {name: a}]}", true),
                 "spec.containers[1].name \"a\" is given twice");
  CHECK_CONTAINS(error_of("spec: {containers: [{name: a}, {}]}", true),
                 "spec.containers[1].name must be");
}

TEST_CASE("several errors are reported at once, and not without end") {
  const std::string message =
      error_of("spec: {hostPID: true, priority: x, containers: [{image: 7}]}");
  CHECK_CONTAINS(message, "spec.hostPID");
  CHECK_CONTAINS(message, "; spec.priority must be");
  CHECK_CONTAINS(message, "spec.containers[0].image must be");
  std::string many = "spec:\n  containers:\n";
  for (int i = 0; i < 1000; ++i) many += "  - 7\n";
  CHECK_CONTAINS(error_of(many), "; and 990 more");
  std::string unknown = "spec:\n  containers: [{}]\n";
  for (int i = 0; i < 1000; ++i) unknown += "  k" + std::to_string(i) + ": 1\n";
  CHECK(load(unknown).warnings.size() == 10);
}

TEST_CASE("a template without a name gets one, and keys given twice are warned about") {
  CHECK(load("spec: {containers: [{}]}").pod["metadata"]["name"] == "helper-pod");
  CHECK(load(meta_with("name: ''")).pod["metadata"]["name"] == "helper-pod");
  CHECK(load(meta_with("name: ")).pod["metadata"]["name"] == "helper-pod");
  CHECK(load("spec: {containers: [{name: ''}]}").pod["spec"]["containers"][0]["name"] ==
        "helper-pod");
  const auto twice = load("metadata: {name: a}\nmetadata: {name: b}\nspec: {containers: [{}]}");
  CHECK(twice.pod["metadata"]["name"] == "b");
  CHECK(has_warning(twice, "helperPod.yaml: line 2: key \"metadata\" is given twice"));
}

}  // namespace
}  // namespace lpp::helperpod
