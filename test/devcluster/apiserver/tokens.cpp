// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/tokens.h"

#include <algorithm>

#include "base/strings.h"

namespace lpp::devcluster {

std::string Tokens::mint(const std::string& user) {
  return mint({.user = user, .audiences = {kApiServer}});
}

std::string Tokens::mint(TokenFacts facts) {
  std::string token = "embedded-" + random_uuid() + random_uuid();
  const MutexLock lock(mutex_);
  known_[token] = std::move(facts);
  return token;
}

std::optional<TokenFacts> Tokens::facts_of(const std::string& token) const {
  const MutexLock lock(mutex_);
  const auto it = known_.find(token);
  if (it == known_.end()) return std::nullopt;
  return it->second;
}

std::optional<std::string> Tokens::user_of(const std::string& token) const {
  const auto facts = facts_of(token);
  if (!facts) return std::nullopt;
  const auto& audiences = facts->audiences;
  if (std::find(audiences.begin(), audiences.end(), kApiServer) == audiences.end()) {
    return std::nullopt;
  }
  return facts->user;
}

void Tokens::revoke(const std::string& token) {
  const MutexLock lock(mutex_);
  known_.erase(token);
}

}  // namespace lpp::devcluster
