// SPDX-License-Identifier: Apache-2.0
#include "harness/kube.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/file_text.h"
#include "harness/kinds.h"
#include "k8s/httplib_transport.h"

namespace lpp::testing {

namespace {

using nlohmann::json;

k8s::ObjectKey key_of(const json& object) {
  const json& meta = object.at("metadata");
  return {meta.value("namespace", ""), meta.value("name", "")};
}

}  // namespace

Result<void> wait_until(const std::string& what, const Condition& condition, Patience patience) {
  SystemClock clock;
  const auto deadline = clock.now() + patience.limit;
  while (true) {
    const std::string missing = condition();
    if (missing.empty()) return {};
    if (clock.now() >= deadline) {
      return Error{.code = ErrorCode::kTimeout,
                   .message = fmt::format("{}: not within {} ms: {}", what, patience.limit.count(),
                                          missing)};
    }
    clock.sleep_for(patience.interval, {});
  }
}

Result<std::unique_ptr<Kube>> Kube::from_kubeconfig(const std::string& file) {
  LPP_ASSIGN_OR_RETURN(auto config, k8s::load_kubeconfig(file), "test client");
  auto clock = std::make_unique<SystemClock>();
  LPP_ASSIGN_OR_RETURN(auto transport, k8s::make_httplib_transport(config, *clock), "test client");
  return std::unique_ptr<Kube>(new Kube(std::move(config), std::move(clock), std::move(transport)));
}

Kube::Kube(k8s::RestConfig config, std::unique_ptr<SystemClock> clock,
           std::unique_ptr<k8s::Transport> transport)
    : config_(std::move(config)),
      clock_(std::move(clock)),
      transport_(std::move(transport)),
      // In no hurry: the machine may be busy with other tests.
      client_(
          *transport_, *clock_,
          {.call_timeout = std::chrono::seconds(60), .list_timeout = std::chrono::seconds(60)}) {}

Result<Upstream> Kube::upstream() const {
  Upstream upstream{.host = config_.host,
                    .port = config_.port,
                    .tls_server_name = config_.tls_server_name,
                    .ca_pem = config_.ca.data,
                    .base_path = config_.base_path};
  if (config_.insecure_skip_tls_verify) {
    upstream.ca_pem.clear();
  } else if (!config_.ca.file.empty()) {
    upstream.ca_pem = text_of(config_.ca.file);
    if (upstream.ca_pem.empty()) return invalid(config_.ca.file + ": cannot be read");
  }
  return upstream;
}

Result<std::optional<json>> Kube::find(const k8s::Resource& resource, const k8s::ObjectKey& key) {
  auto found = client_.get(resource, key);
  if (found.ok()) return std::optional<json>(*std::move(found));
  if (found.error().is(ErrorCode::kNotFound)) return std::optional<json>();
  return std::move(found).error();
}

Result<std::vector<json>> Kube::list(const k8s::Resource& resource, const std::string& ns,
                                     const std::string& label_selector) {
  LPP_ASSIGN_OR_RETURN(json answer, client_.list(resource, ns, {.label_selector = label_selector}),
                       "list");
  std::vector<json> items;
  items.reserve(answer["items"].size());
  for (json& item : answer["items"]) items.push_back(std::move(item));
  return items;
}

Result<json> Kube::create(const json& object) {
  LPP_ASSIGN_OR_RETURN(const auto* resource, resource_of(object), "create");
  return client_.create(*resource, key_of(object).ns, object);
}

Result<void> Kube::apply(const json& object) {
  LPP_ASSIGN_OR_RETURN(const auto* resource, resource_of(object), "apply");
  const auto key = key_of(object);
  const auto made = client_.create(*resource, key.ns, object);
  if (made.ok()) return {};
  if (!made.error().is(ErrorCode::kAlreadyExists)) return made.error().wrap("apply");
  LPP_ASSIGN_OR_RETURN([[maybe_unused]] const auto merged, merge(*resource, key, object), "apply");
  return {};
}

Result<void> Kube::remove(const k8s::Resource& resource, const k8s::ObjectKey& key,
                          std::optional<int> grace_seconds) {
  return client_.remove(resource, key, {.grace_period_seconds = grace_seconds});
}

Result<void> Kube::remove_and_wait(const k8s::Resource& resource, const k8s::ObjectKey& key,
                                   std::optional<int> grace_seconds, Patience patience) {
  auto removed = remove(resource, key, grace_seconds);
  if (!removed.ok()) {
    if (removed.error().is(ErrorCode::kNotFound)) return {};
    return removed;
  }
  return wait_until(
      std::string(resource.kind) + " " + key.to_string() + " is gone",
      [&]() -> std::string {
        const auto found = find(resource, key);
        if (!found.ok()) return found.error().message;
        return found->has_value() ? "it is there: " + (**found)["metadata"].dump() : "";
      },
      patience);
}

Result<json> Kube::merge(const k8s::Resource& resource, const k8s::ObjectKey& key,
                         const json& patch) {
  return client_.patch(resource, key, k8s::PatchType::kMerge, patch);
}

std::vector<std::string> Kube::events_about(const std::string& kind, const k8s::ObjectKey& key) {
  const std::string ns = key.ns.empty() ? "default" : key.ns;
  const auto answer = client_.list(k8s::kEvents, ns, {});
  if (!answer.ok()) return {"events cannot be listed: " + answer.error().message};
  std::vector<std::pair<std::string, std::string>> found;
  for (const json& event : (*answer)["items"]) {
    const json& about = event["involvedObject"];
    if (about.value("kind", "") != kind || about.value("name", "") != key.name) continue;
    found.emplace_back(event["metadata"].value("creationTimestamp", ""),
                       event.value("type", "") + " " + event.value("reason", "") + ": " +
                           event.value("message", ""));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> texts;
  texts.reserve(found.size());
  for (auto& [time, text] : found) texts.push_back(std::move(text));
  return texts;
}

}  // namespace lpp::testing
