// SPDX-License-Identifier: Apache-2.0
#include "provisioner/named_disks.h"

#include <utility>

#include "provisioner/base_paths.h"
#include "provisioner/names.h"

namespace lpp::provisioner {

std::vector<std::string> NamedDisks::of(const std::string& node, const std::string& base_path,
                                        const std::vector<std::string>& base_paths) {
  std::vector<std::string> names;
  {
    MutexLock lock(mutex_);
    sort();
    for (const std::string& on : {node, std::string()}) {
      const auto it = names_.find(on);
      if (it != names_.end()) names.insert(names.end(), it->second.begin(), it->second.end());
    }
  }
  Volumes volumes;
  volumes.reserve(names.size());
  for (const std::string& name : names) {
    if (auto volume = volumes_.get({"", name})) volumes.push_back(std::move(volume));
  }
  return disks_named(volumes, nodes_, node, base_path, base_paths);
}

std::size_t NamedDisks::passes() const {
  MutexLock lock(mutex_);
  return passes_;
}

/// What changes meanwhile is seen the next time.
void NamedDisks::sort() {
  const auto of_volumes = volumes_.changes();
  const auto of_nodes = nodes_.changes();
  if (passes_ > 0 && of_volumes == of_volumes_ && of_nodes.keys == of_nodes_.keys) return;
  ++passes_;
  of_volumes_ = of_volumes;
  of_nodes_ = of_nodes;
  names_.clear();
  for (const auto& volume : volumes_.list()) {
    if (k8s::find(volume->meta.annotations, kVolumeDisk) == nullptr) continue;
    const std::string* const on = k8s::find(volume->meta.annotations, kVolumeSelectedNode);
    const bool is_there = on != nullptr && nodes_.get({"", *on}) != nullptr;
    names_[is_there ? *on : std::string()].push_back(volume->meta.name);
  }
}

}  // namespace lpp::provisioner
