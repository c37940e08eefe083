#include "provisioner/binding.h"

#include <utility>

#include "base/log.h"

namespace lpp::provisioner {

bool Binding::is_ours() const {
  if (by_ == By::kControlPlane) return false;
  MutexLock lock(mutex_);
  return clock_.now() >= refused_until_;
}

void Binding::refused(const Error& error) {
  bool told = false;
  {
    MutexLock lock(mutex_);
    refused_until_ = clock_.now() + kRefusedFor;
    told = std::exchange(told_, true);
  }
  if (told) return;
  log::warn(
      "claims are left to the control plane to bind, which is slower when there are many: {}; the "
      "manifest's ClusterRole has the rights, --bind-claims=false says that it is meant so",
      error.message);
}

}  // namespace lpp::provisioner
