// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace lpp::bench {

/// Requests of one user, by "verb resource[/subresource]".
using RequestCounts = std::map<std::string, std::int64_t>;

/// The API server's audit log, read from where the last look ended. One thread.
class AuditLog {
 public:
  /// Starts at the log's present end. An empty file name counts nothing.
  AuditLog(std::string file, std::string user);

  /// Counts what was written since; returns how many of the lines were the user's. Watches and
  /// the lease's renewals are counted apart: they do not belong to a volume.
  std::size_t read();
  /// What was counted since the last call.
  nlohmann::json take();

 private:
  void count(const std::string& line);

  const std::string file_;
  const std::string user_;
  std::int64_t offset_ = 0;
  RequestCounts counts_;
  RequestCounts apart_;
  RequestCounts failures_;   // by "code verb resource"
  std::int64_t others_ = 0;  // requests of everybody else
};

}  // namespace lpp::bench
