// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lpp::testing {

/// A certificate and its key, PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

/// A certificate authority (EC P-256), made anew and kept in memory only. What it issues has been
/// valid for a day and is so for ten years. Not thread-safe.
class TestCa {
 public:
  explicit TestCa(const std::string& name = "test authority");
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  const std::string& pem() const { return pem_; }
  /// For a server; names such as "DNS:localhost" or "IP:127.0.0.1".
  TestCertificate server(const std::vector<std::string>& names) const;
  /// For a client; the common name is its user name.
  TestCertificate client(const std::string& common_name) const;

 private:
  struct Keys;
  using Extensions = std::vector<std::pair<int, std::string>>;
  TestCertificate issue(const std::string& common_name, const Extensions& extensions) const;

  Keys* keys_;
  std::string pem_;
};

}  // namespace lpp::testing
