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

}  // namespace lpp::devcluster
