// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

/// Certificates of the embedded cluster, made anew at each start and kept in memory only.
namespace lpp::devcluster {

struct ServerCertificates {
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;  ///< of the server certificate
};

/// A CA and a server certificate (EC P-256) for 127.0.0.1, ::1, localhost and the service names of
/// the API server, valid from a day ago for ten years.
Result<ServerCertificates> make_certificates();

}  // namespace lpp::devcluster
