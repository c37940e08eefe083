// SPDX-License-Identifier: Apache-2.0
// Patterns and claims: whatever a class's pathPattern makes of whatever annotations, the path is
// strictly below its base, below the claim's own folder unless the class opts out, and clean.
// Lines: "unsafe" or not, an owner pattern, a mode pattern, the pathPattern; the rest is the value
// of the annotation "a" and of the label "l".

#include <string>
#include <variant>

#include "base/paths.h"
#include "config/config.h"
#include "k8s/objects.h"
#include "property.h"
#include "provisioner/names.h"
#include "provisioner/path_safety.h"
#include "provisioner/plan.h"

namespace {

using lpp::fuzz::require;

void check_components(std::string_view path) {
  require(!path.empty() && path.front() == '/', "the path is absolute");
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto name = path.substr(0, path.find('/'));
    require(!name.empty() && name != "." && name != "..", "every component is a plain name");
    require(name.size() <= 255, "every component fits the filesystem");
    require(name.find('\0') == std::string_view::npos, "no component ends early");
    path.remove_prefix(name.size());
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = lpp::fuzz::text_of(data, size);
  const bool unsafe = lpp::fuzz::take_line(text) == "unsafe";
  lpp::k8s::StorageClass storage_class{.meta = {.name = "local-path"},
                                       .provisioner = "rancher.io/local-path",
                                       .volume_binding_mode = "WaitForFirstConsumer"};
  auto& parameters = storage_class.parameters;
  if (unsafe) parameters[std::string(lpp::provisioner::kAllowUnsafePathPattern)] = "true";
  const std::string owner(lpp::fuzz::take_line(text));
  if (!owner.empty()) parameters["userPattern"] = parameters["groupPattern"] = owner;
  const std::string mode(lpp::fuzz::take_line(text));
  if (!mode.empty()) parameters["permPattern"] = mode;
  parameters["pathPattern"] = std::string(lpp::fuzz::take_line(text));

  lpp::k8s::PersistentVolumeClaim claim{.meta = {.name = "data", .ns = "app", .uid = "1-2-3"},
                                        .storage_class_name = "local-path",
                                        .storage_request = "1Gi",
                                        .access_modes = {"ReadWriteOnce"}};
  claim.meta.annotations["a"] = std::string(text);
  claim.meta.labels["l"] = std::string(text);
  lpp::config::Config config;
  config.paths.node_path_map["n1"] = {"/opt/base", "/mnt/other"};
  const lpp::k8s::Node node{.meta = {.name = "n1"}};

  const auto planned = lpp::provisioner::make_operation(claim, storage_class, &node, config);
  if (const auto* refusal = std::get_if<lpp::provisioner::Refusal>(&planned)) {
    require(!refusal->message.empty(), "a refusal says why");
    return 0;
  }
  const auto& operation = std::get<lpp::operation::Operation>(planned);
  require(operation.base_path == "/opt/base" || operation.base_path == "/mnt/other",
          "the base is a configured one");
  require(lpp::strictly_below(operation.path, operation.base_path), "strictly below the base");
  require(lpp::provisioner::check_volume_path(operation.path).ok(), "the path is safe");
  check_components(operation.path);
  if (!unsafe && !parameters["pathPattern"].empty()) {
    require(lpp::is_at_or_below(operation.path, operation.base_path + "/app/data"),
            "below the claim's own folder");
  }
  require(operation.perm.find_first_not_of("01234567") == std::string::npos, "a mode is octal");
  for (const auto& name : {operation.user, operation.group}) {
    require(name.find_first_of(" \n\t'\"`$;&|<>/:\\") == std::string::npos, "an owner is one word");
  }
  return 0;
}
