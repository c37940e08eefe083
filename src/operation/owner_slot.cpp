// SPDX-License-Identifier: Apache-2.0
#include "operation/owner_slot.h"

#include <utility>

namespace lpp::operation {

/// A call that runs, where there is an owner. At its end nothing is left of the owner, and clear()
/// may go on.
class OwnerSlot::Call {
 public:
  explicit Call(const OwnerSlot& slot) : slot_(slot) {
    MutexLock lock(slot_.mutex_);
    owner_ = slot_.owner_;
    if (owner_) ++slot_.running_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (!owner_) return;
    owner_.reset();
    MutexLock lock(slot_.mutex_);
    --slot_.running_;
    slot_.ended_.notify_all();  // under the lock: who has cleared it may destroy it
  }

  const Owner* owner() const { return owner_.get(); }

 private:
  const OwnerSlot& slot_;
  std::shared_ptr<const Owner> owner_;
};

void OwnerSlot::set(Owner owner) {
  auto shared = std::make_shared<const Owner>(std::move(owner));
  MutexLock lock(mutex_);
  owner_.swap(shared);
}

void OwnerSlot::clear() {
  std::shared_ptr<const Owner> cleared;
  MutexLock lock(mutex_);
  owner_.swap(cleared);
  while (running_ > 0) ended_.wait(mutex_);
}

void OwnerSlot::call(const std::function<void(const Owner&)>& tell) const {
  const Call call(*this);
  if (const Owner* const owner = call.owner()) tell(*owner);
}

void OwnerSlot::wake(const Operation& operation) const {
  call([&](const Owner& owner) { owner.wake(operation); });
}

}  // namespace lpp::operation
