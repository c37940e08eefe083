// SPDX-License-Identifier: Apache-2.0
// Helper pods as whole objects, in test/data/golden/pod.json.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/golden.h"
#include "helperpod/manifest.h"
#include "unit/helperpod/manifest_fixture.h"

namespace lpp::helperpod::manifest_golden {
namespace {

using manifest_fixture::kSimple;
using nlohmann::json;
using operation::Kind;
using operation::Operation;
using operation::Shape;

/// Every field that is allowed without --allow-unsafe-helper-pod-template.
constexpr const char* kEveryField = R"(
apiVersion: v1
kind: Pod
metadata:
  name: my-helper
  namespace: somewhere-else
  labels: {team: storage}
  annotations: {example.com/note: "yes"}
spec:
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
  automountServiceAccountToken: true
  dnsConfig: {nameservers: [10.0.0.1]}
  dnsPolicy: None
  enableServiceLinks: false
  hostAliases: [{ip: 10.0.0.2, hostnames: [registry]}]
  hostUsers: true
  hostname: helper
  imagePullSecrets: [{name: registry}]
  nodeSelector: {disk: ssd}
  os: {name: linux}
  overhead: {cpu: 10m}
  preemptionPolicy: Never
  priority: 1000
  priorityClassName: high
  readinessGates: []
  resources: {limits: {cpu: "1"}}
  runtimeClassName: runc
  schedulerName: other
  securityContext:
    fsGroup: 5
    fsGroupChangePolicy: Always
    runAsGroup: 6
    runAsNonRoot: true
    runAsUser: 7
    seLinuxOptions: {user: u, role: r, type: t, level: s0}
    seccompProfile: {type: RuntimeDefault}
    appArmorProfile: {type: RuntimeDefault}
    supplementalGroups: [8]
    supplementalGroupsPolicy: Strict
  setHostnameAsFQDN: false
  shareProcessNamespace: false
  subdomain: sub
  terminationGracePeriodSeconds: 5
  tolerations:
  - {key: dedicated, operator: Equal, value: storage, effect: NoExecute, tolerationSeconds: 60}
  topologySpreadConstraints: []
  containers:
  - name: worker
    image: registry.example.com/helper@sha256:0123
    imagePullPolicy: Always
    env: [{name: HTTP_PROXY, value: "http://proxy:3128"}, {name: VOL_SIZE_BYTES, value: forged}]
    ports: [{name: p, containerPort: 80, protocol: TCP}]
    resources: {limits: {cpu: 1, memory: 64Mi, ephemeral-storage: 1Gi}, requests: {cpu: 10m}}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      privileged: false
      readOnlyRootFilesystem: true
      runAsUser: 0
      seLinuxOptions: {level: "s0:c1"}
    stdin: true
    stdinOnce: true
    terminationMessagePath: /tmp/log
    terminationMessagePolicy: File
    tty: true
    workingDir: /tmp
)";

constexpr const char* kUnsafe = R"(
metadata: {name: helper-pod}
spec:
  nodeName: never-here
  serviceAccountName: powerful
  serviceAccount: powerful
  hostPID: true
  hostNetwork: true
  initContainers: [{name: first, image: x, command: [/prepare]}]
  volumes:
  - {name: tools, hostPath: {path: /opt/tools, type: Directory}}
  containers:
  - name: helper-pod
    image: xfs
    command: [/never]
    args: [never]
    env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
    envFrom: [{secretRef: {name: s}}]
    securityContext: {privileged: true}
    lifecycle: {preStop: {exec: {command: [/bye]}}}
    volumeMounts:
    - {name: tools, mountPath: /tools, readOnly: true}
    - {name: data, mountPath: /mnt/data/, mountPropagation: Bidirectional}
  - {name: sidecar, image: other, command: [/side], args: [car]}
)";

Operation create() {
  return Operation{.kind = Kind::kMake,
                   .volume_name = "pvc-0b5d4f0c-1111-2222-3333-444455556666",
                   .claim = {"default", "data"},
                   .owner_uid = "0b5d4f0c-1111-2222-3333-444455556666",
                   .storage_class = "local-path",
                   .node = "n1",
                   .base_path = "/opt/lp",
                   .path = "/opt/lp/pvc-0b5d4f0c-1111-2222-3333-444455556666_default_data",
                   .size_bytes = 1073741824,
                   .volume_mode = "Filesystem"};
}

/// Of a released volume: owned by the volume, not by the claim as an undo is.
Operation remove() {
  Operation operation = create();
  operation.kind = Kind::kRemove;
  operation.owner_uid = "volume-uid";
  return operation;
}

Operation nested(Operation operation) {
  operation.path = "/opt/lp/default/data/web 1";
  return operation;
}

ManifestSettings usual() {
  return ManifestSettings{.provisioner_name = "rancher.io/local-path",
                          .ns = "local-path-storage",
                          .service_account = "local-path-provisioner-service-account",
                          .config_map = "local-path-config",
                          .helper_image = "rancher/library-busybox:1.32.1",
                          .deadline = std::chrono::seconds(120)};
}

/// The pod, with the record of the operation as an object and not as a text within a text.
void check(const std::string& name, const char* yaml, const Operation& operation,
           const ManifestSettings& settings = usual(), bool allow_unsafe = false) {
  CAPTURE(name);
  const auto pod_template = parse_template(yaml, "helperPod.yaml", allow_unsafe);
  REQUIRE_MESSAGE(pod_template.ok(), pod_template.error().message);
  auto pod = make_pod(*pod_template, operation, settings);
  REQUIRE_MESSAGE(pod.ok(), pod.error().message);
  auto& record = (*pod)["metadata"]["annotations"]["local.path.provisioner/operation"];
  record = json::parse(record.get<std::string>());
  testing::check_golden("pod", name, *pod);
}

TEST_CASE("golden: helper pods for creating, deleting and undoing, from the usual template") {
  check("create", kSimple, create());
  check("delete", kSimple, remove());
  Operation undo = create();
  undo.kind = Kind::kTakeBack;
  check("undo", kSimple, undo);
  Operation again = create();
  again.attempt = 3;
  check("create-third-attempt", kSimple, again);
}

TEST_CASE("golden: helper pods that take a directory back only if it is empty") {
  Operation undo = create();
  undo.kind = Kind::kTakeBack;
  undo.only_if_empty = true;
  check("undo-if-empty", kSimple, undo);
  check("undo-if-empty-every-field", kEveryField, nested(undo));
  // Our own image has no shell.
  ManifestSettings own = usual();
  own.setup_command = own.teardown_command = "/usr/bin/local-path-node";
  check("undo-if-empty-own-program", kSimple, undo, own);
  // It looks by its record whether it may.
  undo.only_if_empty = false;
  check("undo-own-program", kSimple, undo, own);
  check("delete-own-program", kSimple, remove(), own);
}

TEST_CASE("golden: helper pods record how the volume is to look") {
  Operation operation = create();
  operation.shape = Shape{.source = k8s::VolumeSource::kLocal,
                          .affinity_key = "kubernetes.io/hostname",
                          .affinity_value = "n1",
                          .mount_options = {"noatime", "ro"},
                          .reclaim_policy = "Retain"};
  check("create-shape", kSimple, operation);
}

TEST_CASE("golden: helper pods below folders of a path pattern") {
  check("create-nested", kSimple, nested(create()));
  check("delete-nested", kSimple, nested(remove()));
}

TEST_CASE("golden: helper pods get user, group and mode for creating only") {
  Operation operation = create();
  operation.user = "1000";
  operation.group = "www-data";
  operation.perm = "2770";
  check("create-owned", kSimple, operation);
  operation.kind = Kind::kRemove;
  operation.owner_uid = "volume-uid";
  check("delete-owned", kSimple, operation);
}

TEST_CASE("golden: helper pods on a shared filesystem run anywhere") {
  Operation operation = create();
  operation.node.clear();
  operation.base_path = "/mnt/nfs";
  operation.path = "/mnt/nfs/pvc-0b5d4f0c-1111-2222-3333-444455556666_default_data";
  check("create-shared", kSimple, operation);
  operation.kind = Kind::kRemove;
  operation.owner_uid = "volume-uid";
  check("delete-shared", kSimple, operation);
}

TEST_CASE("golden: helper pods of images without a shell") {
  ManifestSettings both = usual();
  both.setup_command = "/manager";
  both.teardown_command = "/remover";
  check("create-commands", kSimple, create(), both);
  check("delete-commands", kSimple, remove(), both);
  ManifestSettings setup = usual();
  setup.setup_command = "/manager";
  check("create-setup-command", kSimple, create(), setup);
  check("delete-setup-command", kSimple, remove(), setup);
  ManifestSettings teardown = usual();
  teardown.teardown_command = "/remover";
  check("create-teardown-command", kSimple, create(), teardown);
  check("delete-teardown-command", kSimple, remove(), teardown);
}

TEST_CASE("golden: helper pods from templates that say nothing, and everything that is allowed") {
  check("create-least-template", "spec: {containers: [{}]}", create());
  check("create-every-field", kEveryField, create());
  check("delete-every-field", kEveryField, nested(remove()));
}

TEST_CASE("golden: helper pods from an unsafe template with the data mounted elsewhere") {
  check("create-unsafe", kUnsafe, create(), usual(), true);
  check("create-unsafe-nested", kUnsafe, nested(create()), usual(), true);
  Operation anywhere = create();
  anywhere.node.clear();
  check("create-unsafe-shared", kUnsafe, anywhere, usual(), true);
}

TEST_CASE("golden: helper pods of names that are too long or not valid") {
  const std::string long_name(100, 'h');
  check("create-long-template-name",
        ("metadata: {name: " + long_name + "}\nspec: {containers: [{}]}").c_str(), create());
  Operation volume = create();
  volume.volume_name = "pvc-" + std::string(200, 'v');
  check("create-long-volume-name", kSimple, volume);
  ManifestSettings other = usual();
  other.provisioner_name = "example.com/" + std::string(60, 'p');
  other.ns = "elsewhere";
  other.service_account = "sa";
  other.config_map = "cm";
  check("create-other-settings", kSimple, create(), other);
}

TEST_CASE("golden: helper pods for names that a shell or the kubelet would read otherwise") {
  Operation operation = create();
  operation.claim = {"team-a", "data.web"};
  operation.path = "/opt/lp/$(VOL_SIZE_BYTES) $$x '\"ü";
  check("create-strange-path", kSimple, operation);
  operation.path = "/script/v";
  operation.base_path = "/script";
  check("create-below-script", kSimple, operation);
}

}  // namespace
}  // namespace lpp::helperpod::manifest_golden
