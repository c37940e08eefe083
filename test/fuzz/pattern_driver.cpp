// SPDX-License-Identifier: Apache-2.0
// Renders patterns for the fuzzer: one JSON object per line in, one per line out.
//   in:  {"pattern": HEX, "pvName": TEXT, "claim": METADATA}
//   out: {"output": HEX} or {"error": HEX}
// Texts of results go as hexadecimal digits, since they may be anything but UTF-8.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "config/path_template.h"
#include "k8s/objects.h"

namespace {

using nlohmann::json;

std::string to_hex(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte / 16];
    hex += kDigits[byte % 16];
  }
  return hex;
}

std::string from_hex(const std::string& hex) {
  std::string text;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    text += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return text;
}

json render(const json& input) {
  const auto claim = lpp::k8s::decode<lpp::k8s::ConfigMap>({{"metadata", input["claim"]}});
  if (!claim.ok()) return {{"broken", claim.error().message}};
  const auto parsed =
      lpp::config::PathTemplate::parse(from_hex(input["pattern"].get<std::string>()), "p");
  if (!parsed.ok()) return {{"error", to_hex(parsed.error().message)}};
  const auto rendered = parsed->render(input["pvName"].get<std::string>(), claim->meta);
  if (!rendered.ok()) return {{"error", to_hex(rendered.error().message)}};
  return {{"output", to_hex(*rendered)}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << render(json::parse(line)).dump() << '\n' << std::flush;
  }
  return 0;
}
