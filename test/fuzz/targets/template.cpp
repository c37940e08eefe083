// SPDX-License-Identifier: Apache-2.0
// helperPod.yaml: whatever template is accepted, the helper pod made from it has no more power than
// ours, reaches no host path but that of its operation, and records the operation.

#include "helperpod/template.h"

#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "helperpod/manifest.h"
#include "k8s/json_access.h"
#include "k8s/objects.h"
#include "operation/record.h"
#include "property.h"

namespace {

using lpp::fuzz::require;
using lpp::k8s::member;
using nlohmann::json;

void check_container(const json& container) {
  const json& security = member(container, "securityContext");
  require(member(security, "privileged") != true, "no privileged container");
  require(member(security, "allowPrivilegeEscalation") != true, "no privilege escalation");
  require(member(member(security, "capabilities"), "add").empty(), "no added capabilities");
  require(member(container, "envFrom").is_null(), "no environment from elsewhere");
}

void check_pod(const json& pod, const lpp::operation::Operation& operation) {
  const json& spec = member(pod, "spec");
  for (const char* key : {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"}) {
    require(member(spec, key) != true, "no namespace of the host");
  }
  require(member(pod, "metadata")["namespace"] == "ns", "the namespace is ours");
  require(member(spec, "nodeName") == operation.node, "the node is the operation's");
  require(member(spec, "serviceAccountName") == "sa", "the account is ours");
  require(member(spec, "restartPolicy") == "Never", "it runs once");
  for (const json& volume : member(spec, "volumes")) {
    const json& host = member(volume, "hostPath");
    if (!host.is_null()) {
      require(lpp::is_at_or_below(host["path"].get<std::string>(), operation.base_path),
              "host paths are the operation's");
    }
    require(member(volume, "secret").is_null() && member(volume, "projected").is_null(),
            "no secret is mounted");
  }
  for (const json& container : member(spec, "containers")) check_container(container);
  require(member(spec, "initContainers").empty(), "no init containers");
  require(member(spec, "ephemeralContainers").empty(), "no ephemeral containers");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = lpp::fuzz::text_of(data, size);
  const auto any = lpp::helperpod::parse_template(text, "helperPod.yaml", true);
  const auto safe = lpp::helperpod::parse_template(text, "helperPod.yaml", false);
  require(any.ok() || !safe.ok(), "what is accepted as safe is accepted as unsafe");
  if (!safe.ok()) {
    require(safe.error().message.starts_with("helperPod.yaml: "), "an error names the file");
    return 0;
  }
  const lpp::operation::Operation operation{.volume_name = "pvc-1",
                                            .claim = {"app", "data"},
                                            .owner_uid = "1",
                                            .node = "n1",
                                            .base_path = "/opt/base",
                                            .path = "/opt/base/pvc-1_app_data"};
  const auto pod = lpp::helperpod::make_pod(*safe, operation,
                                            {.provisioner_name = "p",
                                             .ns = "ns",
                                             .service_account = "sa",
                                             .config_map = "map",
                                             .helper_image = "image"});
  if (!pod.ok()) return 0;
  check_pod(*pod, operation);
  const auto decoded = lpp::k8s::decode<lpp::k8s::Pod>(*pod);
  require(decoded.ok(), "the pod can be read back");
  const auto recorded = lpp::helperpod::operation_of(*decoded);
  require(recorded.ok() && recorded->id() == operation.id(),
          "the pod records which operation it is");
  require(lpp::operation::encode_operation(*recorded).value() ==
              lpp::operation::encode_operation(operation).value(),
          "the pod records all of its operation");
  return 0;
}
