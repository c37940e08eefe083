// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/sync.h"

namespace lpp::devcluster {

/// What is known of a token.
struct TokenFacts {
  std::string user{};                    // "system:serviceaccount:local-path-storage:provisioner"
  std::vector<std::string> audiences{};  // whom it is for
  std::string pod{};                     // that it is bound to; "" = none
  std::string pod_uid{};
  std::string node{};  // of that pod, when the token was made
};

/// Bearer tokens and the users they stand for. Tokens never end. Thread-safe.
class Tokens {
 public:
  /// The audience of the API server itself.
  static constexpr const char* kApiServer = "https://kubernetes.default.svc";

  /// A new token for `user`, for the API server.
  std::string mint(const std::string& user);
  std::string mint(TokenFacts facts);
  std::optional<TokenFacts> facts_of(const std::string& token) const;
  /// Of a token for the API server.
  std::optional<std::string> user_of(const std::string& token) const;
  /// The token is refused (401) from now on.
  void revoke(const std::string& token);

 private:
  mutable Mutex mutex_;
  std::map<std::string, TokenFacts> known_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
