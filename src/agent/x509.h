// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace lpp::agent {

using WallTime = std::chrono::system_clock::time_point;

/// A certificate and its private key, PEM.
struct KeyPair {
  std::string certificate{};
  std::string key{};
  bool empty() const { return certificate.empty() && key.empty(); }
  bool operator==(const KeyPair&) const = default;
};

/// What a certificate says.
struct CertificateFacts {
  WallTime not_before{};
  WallTime not_after{};
  std::vector<std::string> names{};  // DNS names, then IP addresses
};

/// Certificates on P-256. All functions are pure but for the random numbers of keys and serials.
/// Every certificate begins five minutes before `now`, for clocks that are behind.

/// An authority that signs servers and nothing else.
Result<KeyPair> make_authority(const std::string& name, WallTime now, std::chrono::hours life);

/// A server certificate for these DNS names and IP addresses.
Result<KeyPair> issue_server(const KeyPair& authority, const std::vector<std::string>& names,
                             WallTime now, std::chrono::hours life);

/// kInvalid: it is not a certificate with its key.
Result<CertificateFacts> inspect(const KeyPair& pair);

/// Whether the authority signed it.
bool is_signed_by(const std::string& certificate, const std::string& authority);

}  // namespace lpp::agent
