#include "devcluster/apiserver/tokens.h"

#include "base/strings.h"

namespace lpp::devcluster {

std::string Tokens::mint(const std::string& user) {
  std::string token = "embedded-" + random_uuid() + random_uuid();
  const MutexLock lock(mutex_);
  users_[token] = user;
  return token;
}

std::optional<std::string> Tokens::user_of(const std::string& token) const {
  const MutexLock lock(mutex_);
  const auto it = users_.find(token);
  if (it == users_.end()) return std::nullopt;
  return it->second;
}

void Tokens::revoke(const std::string& token) {
  const MutexLock lock(mutex_);
  users_.erase(token);
}

}  // namespace lpp::devcluster
