// SPDX-License-Identifier: Apache-2.0
#include "app/disk_news.h"

#include "base/log.h"
#include "provisioner/names.h"

namespace lpp::app {

void DiskNews::look(const std::string& node, const std::string& base_path, const std::string& why) {
  const bool is_missing = !why.empty();
  const auto known = nodes_.get({"", node});
  bool is_line = false;
  bool is_event = false;
  {
    MutexLock lock(mutex_);
    const auto it = told_.try_emplace({node, base_path}).first;
    Told& told = it->second;
    is_line = std::exchange(told.in_log, is_missing) != is_missing;
    is_event = known != nullptr && std::exchange(told.in_event, is_missing) != is_missing;
    if (!told.any()) told_.erase(it);
  }
  const std::string message = is_missing ? why
                                         : base_path + " on node " + node +
                                               " has its disk again: what waited for it goes on";
  if (is_line && is_missing) log::warn("{}", message);
  if (is_line && !is_missing) log::info("{}", message);
  if (!is_event) return;
  events_.event(k8s::reference_to("Node", known->meta),
                is_missing ? k8s::EventType::kWarning : k8s::EventType::kNormal,
                is_missing ? provisioner::kDiskMissing : provisioner::kDiskBack, message);
}

}  // namespace lpp::app
