// SPDX-License-Identifier: Apache-2.0
#include "app/disk_news.h"

#include "base/log.h"
#include "provisioner/names.h"

namespace lpp::app {

void DiskNews::look(const std::string& node, const std::string& base_path, const std::string& why) {
  const std::pair place{node, base_path};
  {
    MutexLock lock(mutex_);
    const bool is_news = why.empty() ? unfit_.erase(place) > 0 : unfit_.insert(place).second;
    if (!is_news) return;
  }
  if (!why.empty()) {
    log::warn("{}", why);
    return tell(node, k8s::EventType::kWarning, provisioner::kDiskMissing, why);
  }
  const std::string message =
      base_path + " on node " + node + " has its disk again: what waited for it goes on";
  log::info("{}", message);
  tell(node, k8s::EventType::kNormal, provisioner::kDiskBack, message);
}

void DiskNews::tell(const std::string& node, k8s::EventType type, std::string_view reason,
                    const std::string& message) const {
  const auto known = nodes_.get({"", node});
  if (known == nullptr) return;
  events_.event(k8s::reference_to("Node", known->meta), type, reason, message);
}

}  // namespace lpp::app
