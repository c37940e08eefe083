#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>

#include "cli_bed.h"
#include "fakes/temp_folder.h"

using lpp::testing::CliBed;

namespace {

/// What bash offers for each line of words, the last word being completed: one line for each.
std::vector<std::string> bash_offers(const std::string& script,
                                     const std::vector<std::string>& lines) {
  std::string text = script;
  for (const std::string& words : lines) {
    text += "COMP_WORDS=(" + words +
            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_local_path_provisioner\n"
            "echo \"${COMPREPLY[*]}\"\n";
  }
  const lpp::testing::TempFolder folder;
  std::FILE* pipe = popen(("bash --norc " + folder.write("script", text) + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::vector<std::string> offers(1);
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c == '\n') {
      offers.emplace_back();
    } else {
      offers.back() += static_cast<char>(c);
    }
  }
  offers.pop_back();
  CHECK(pclose(pipe) == 0);
  return offers;
}

}  // namespace

TEST_CASE("bash completes commands, flags, and the values of choices") {
  CliBed bed;
  const auto script = bed.run({"completion", "bash"});
  REQUIRE(script.code == 0);
  std::vector<std::string> lines{"x --debug comp", "x completion z", "x version -o ''"};
  std::vector<std::string> wanted{"completion", "zsh", "json"};
  for (const lpp::cli::Command& command : lpp::cli::commands()) {
    if (command.hidden) continue;
    lines.push_back("x " + std::string(command.name));
    wanted.emplace_back(command.name);
    for (const lpp::cli::FlagGroup& group : lpp::cli::all_flags(command)) {
      for (const lpp::cli::Flag& flag : group.flags) {
        wanted.push_back("--" + std::string(flag.name));
        lines.push_back("x " + std::string(command.name) + " " + wanted.back());
      }
    }
  }
  const auto offers = bash_offers(script.out, lines);
  REQUIRE(offers.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(lines[i]);
    CHECK((" " + offers[i] + " ").find(" " + wanted[i] + " ") != std::string::npos);
  }
}

TEST_CASE("the zsh script names every command and flag") {
  CliBed bed;
  const auto script = bed.run({"completion", "zsh"});
  REQUIRE(script.code == 0);
  CHECK(script.out.starts_with("#compdef local-path-provisioner"));
  for (const lpp::cli::Command& command : lpp::cli::commands()) {
    if (command.hidden) continue;
    const auto at = script.out.find("\n        " + std::string(command.name) + ")");
    CHECK(at != std::string::npos);
    for (const lpp::cli::FlagGroup& group : command.flags) {
      for (const lpp::cli::Flag& flag : group.flags) {
        CHECK(script.out.find("--" + std::string(flag.name), at) != std::string::npos);
      }
    }
  }
}

TEST_CASE("completion for another shell is refused") {
  CliBed bed;
  CHECK(bed.run({"completion", "fish"}).code == 2);
  CHECK(bed.run({"completion"}).code == 2);
}

TEST_CASE("the version is one line or JSON") {
  CliBed bed;
  CHECK(bed.run({"version"}).out == "local-path-provisioner version 1.2.3\n");
  CHECK(bed.run({"version", "-o", "json"}).out == "{\n  \"version\": \"1.2.3\"\n}\n");
  CHECK(bed.run({"version", "-o", "xml"}).code == 2);
}
