// SPDX-License-Identifier: Apache-2.0
#include "provisioner/binding.h"

#include <string>

#include "base/log.h"

namespace lpp::provisioner {

bool Binding::is_ours() const {
  if (by_ == By::kControlPlane) return false;
  MutexLock lock(mutex_);
  return clock_.now() >= refused_until_;
}

bool Binding::lacks_right(const Error& error) {
  return error.is(ErrorCode::kForbidden) &&
         error.message.find("cannot patch resource") != std::string::npos;
}

void Binding::refused(const Error& error) {
  bool told = false;
  {
    MutexLock lock(mutex_);
    const TimePoint now = clock_.now();
    told = now < refused_until_;
    refused_until_ = now + kRefusedFor;
  }
  if (told) return;
  log::warn(
      "claims are left to the control plane to bind, which is slower when there are many: {}; the "
      "manifest's ClusterRole has the permissions, --bind-claims=false says that it is meant so",
      error.message);
}

}  // namespace lpp::provisioner
