// SPDX-License-Identifier: Apache-2.0
#include "bench/audit_log.h"

#include <filesystem>
#include <fstream>

namespace lpp::bench {

using nlohmann::json;

AuditLog::AuditLog(std::string file, std::string user)
    : file_(std::move(file)), user_(std::move(user)) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file_, error);
  if (!error) offset_ = static_cast<std::int64_t>(size);
}

std::size_t AuditLog::read() {
  std::ifstream file(file_, std::ios::binary);
  if (!file) return 0;
  file.seekg(offset_);
  std::size_t ours = 0;
  const std::string needle = "\"username\":\"" + user_ + "\"";
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // not written to its end yet
    offset_ += static_cast<std::int64_t>(line.size()) + 1;
    if (line.find(needle) == std::string::npos) {
      ++others_;
      continue;
    }
    ++ours;
    count(line);
  }
  return ours;
}

void AuditLog::count(const std::string& line) {
  const json event = json::parse(line, nullptr, false);
  if (event.is_discarded() || event.value("stage", "") == "ResponseStarted") return;
  const json object = event.value("objectRef", json::object());
  const std::string subresource = object.value("subresource", "");
  const std::string verb = event.value("verb", "");
  const std::string resource = object.value("resource", event.value("requestURI", ""));
  const std::string name = verb + " " + resource + (subresource.empty() ? "" : "/" + subresource);
  const bool is_apart = verb == "watch" || resource == "leases" || resource == "endpoints";
  ++(is_apart ? apart_ : counts_)[name];
  const int code = event.value("responseStatus", json::object()).value("code", 0);
  if (code >= 400) ++failures_[std::to_string(code) + " " + name];
}

json AuditLog::take() {
  std::int64_t sum = 0;
  for (const auto& [name, number] : counts_) sum += number;
  json result = {{"by_verb", counts_},
                 {"apart", apart_},
                 {"failures", failures_},
                 {"sum", sum},
                 {"others", others_}};
  counts_.clear();
  apart_.clear();
  failures_.clear();
  others_ = 0;
  return result;
}

}  // namespace lpp::bench
