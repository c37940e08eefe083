#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/sync.h"

namespace lpp::devcluster {

/// Bearer tokens and the users they stand for. Tokens never end. Thread-safe.
class Tokens {
 public:
  /// A new token for `user`, e.g. "system:serviceaccount:local-path-storage:provisioner".
  std::string mint(const std::string& user);
  std::optional<std::string> user_of(const std::string& token) const;
  /// The token is refused (401) from now on.
  void revoke(const std::string& token);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> users_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
