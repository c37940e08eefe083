// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/must.h"
#include "helperpod/manifest.h"
#include "unit/app/script_run.h"

/// Runs the script of ours that a helper pod gets, as the kubelet does.
namespace lpp::helperpod {

/// What the kubelet makes of a text with $$ in it.
inline std::string expanded(std::string text) {
  for (auto at = text.find("$$"); at != std::string::npos; at = text.find("$$", at + 1)) {
    text.erase(at, 1);
  }
  return text;
}

/// Lines before a script to which stat tells an error of the disk for that path, but not that it is
/// not there. No test of a shell tells the two apart.
inline std::string unseen(const std::string& path) {
  return "look() {\n  case \" $* \" in *\" " + path + R"( "*) command [ "$1" = "!" ]; return ;; esac
  command [ "$@"
}
ls() {
  case "$*" in *")" +
         path + R"(") echo "ls: it: Input/output error" >&2; return 1 ;; esac
  command ls "$@"
}
alias [=look
)";
}

inline constexpr const char* kEmptyTemplate = "spec: {containers: [{}]}";

/// `instead`: files of the container, each at least once in the script, and what stands for them.
/// `first`: lines before the script.
inline testing::Run run_own_script(const operation::Operation& operation,
                                   const ManifestSettings& settings, std::vector<std::string> shell,
                                   const std::vector<std::pair<std::string, std::string>>& instead,
                                   const char* from_template = kEmptyTemplate,
                                   const std::string& first = {}) {
  const auto parsed = LPP_MUST(parse_template(from_template, "t", false));
  const auto pod = LPP_MUST(make_pod(parsed, operation, settings));
  const nlohmann::json& container = pod["spec"]["containers"][0];
  REQUIRE(container["command"].size() == 4);
  REQUIRE(container["command"][1] == "-c");
  std::string script = expanded(container["command"][2]);
  for (const auto& [theirs, ours] : instead) {
    auto at = script.find(theirs);
    REQUIRE(at != std::string::npos);
    for (; at != std::string::npos; at = script.find(theirs, at + ours.size())) {
      script.replace(at, theirs.size(), ours);
    }
  }
  testing::Environment environment;
  for (const nlohmann::json& variable : container["env"]) {
    std::string value = expanded(variable["value"]);
    if (variable["name"] == "VOL_BASE_DIR") value = operation.base_path;
    environment.emplace_back(variable["name"], value);
  }
  shell.insert(shell.end(), {"-c", first + script, container["command"][3]});
  for (const nlohmann::json& argument : container["args"]) shell.push_back(expanded(argument));
  return testing::run(shell, environment);
}

}  // namespace lpp::helperpod
