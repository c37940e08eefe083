// SPDX-License-Identifier: Apache-2.0
#include "bench/arguments.h"

#include <charconv>

namespace lpp::bench {

Result<Arguments> Arguments::parse(const std::vector<std::string>& words,
                                   const std::set<std::string>& known) {
  Arguments parsed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) return invalid("not a flag: " + words[i]);
    const std::string name = words[i].substr(2);
    if (!known.contains(name)) return invalid("unknown flag --" + name);
    if (++i == words.size()) return invalid("--" + name + ": the value is missing");
    parsed.values_[name].push_back(words[i]);
  }
  return parsed;
}

std::string Arguments::text(const std::string& name, const std::string& fallback) const {
  const auto it = values_.find(name);
  return it == values_.end() ? fallback : it->second.back();
}

std::vector<std::string> Arguments::all(const std::string& name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::string>{} : it->second;
}

Result<std::size_t> Arguments::number(const std::string& name, std::size_t fallback) const {
  if (!has(name)) return fallback;
  const std::string value = text(name);
  std::size_t parsed = 0;
  const char* last = value.data() + value.size();
  const auto [end, code] = std::from_chars(value.data(), last, parsed);
  if (code != std::errc{} || end != last || parsed > 1'000'000) {
    return invalid("--" + name + ": not a whole number of at most 1000000: " + value);
  }
  return parsed;
}

Result<std::string> Arguments::required(const std::string& name) const {
  if (!has(name)) return invalid("--" + name + " is missing");
  return text(name);
}

}  // namespace lpp::bench
