// SPDX-License-Identifier: Apache-2.0
// The command line and the variables of `node`, which a helper pod gets from what claims and
// classes say. A line that begins with '=' is a variable, any other an argument. Whatever is
// accepted leads to a place below a base folder.

#include <map>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/node_request.h"
#include "property.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lpp::fuzz::require;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> variables;
  for (const std::string_view line : lpp::split(lpp::fuzz::text_of(data, size), '\n')) {
    const auto equals = line.find('=', 1);
    if (line.starts_with('=') && equals != std::string_view::npos) {
      variables[std::string(line.substr(1, equals - 1))] = line.substr(equals + 1);
    } else {
      arguments.emplace_back(line);
    }
  }
  const auto given = lpp::cli::parse_flags(arguments, lpp::cli::node_flags());
  if (!given.ok()) return 0;
  const auto request = lpp::cli::read_node_request(
      *given, [&](const std::string& name) -> std::optional<std::string> {
        const auto it = variables.find(name);
        return it == variables.end() ? std::nullopt : std::optional(it->second);
      });
  if (!request.ok()) {
    require(!request.error().message.empty(), "an error has a message");
    return 0;
  }
  require(request->base.starts_with('/') && lpp::node::is_path(request->base.substr(1)),
          "the base folder is an absolute path");
  require(request->path.empty() || lpp::node::is_path(request->path),
          "the path stays below the base folder");
  using lpp::cli::NodeAction;
  const bool one = request->action == NodeAction::kMake || request->action == NodeAction::kAdopt ||
                   request->action == NodeAction::kRemove || request->action == NodeAction::kResize;
  require(!one || !request->id.empty(), "one volume has an id");
  require(!request->limited || request->limits.any(), "a limit is one");
  require(request->access.mode <= 07777, "a mode is one");
  return 0;
}
