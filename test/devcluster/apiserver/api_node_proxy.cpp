// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/api_handler.h"
#include "devcluster/apiserver/status.h"

namespace lpp::devcluster {

void ApiHandler::set_kubelets(KubeletSource source) {
  const MutexLock lock(mutex_);
  kubelets_ = std::move(source);
}

ApiHandler::Answer ApiHandler::node_proxy(const Call& call) {
  const auto node = registry_.get({call.path.info->plural, "", call.path.name});
  if (!node.ok()) return plain(node);
  KubeletSource source;
  {
    const MutexLock lock(mutex_);
    source = kubelets_;
  }
  const auto answer =
      source ? source(call.path.name, call.path.proxied) : std::optional<std::string>();
  if (!answer) return {.code = 404, .body = "404 page not found\n", .content_type = "text/plain"};
  return {.body = *answer};
}

void ApiHandler::set_pod_pages(PodPageSource source) {
  const MutexLock lock(mutex_);
  pod_pages_ = std::move(source);
}

ApiHandler::Answer ApiHandler::pod_proxy(const Call& call) {
  const std::string& name = call.path.name;  // with the port
  const auto pod =
      registry_.get({call.path.info->plural, call.path.ns, name.substr(0, name.find(':'))});
  if (!pod.ok()) return plain(pod);
  PodPageSource source;
  {
    const MutexLock lock(mutex_);
    source = pod_pages_;
  }
  const auto answer =
      source ? source(call.path.ns, name, call.path.proxied) : std::optional<std::string>();
  if (!answer) return {.code = 404, .body = "404 page not found\n", .content_type = "text/plain"};
  return {.body = *answer};
}

}  // namespace lpp::devcluster
