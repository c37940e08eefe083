// SPDX-License-Identifier: Apache-2.0
// Every command in the docs is run by test/docs/walk.sh (limits.sh, agents.sh), or stands in
// elsewhere.sh with the reason why not.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "places/places.h"

namespace fs = std::filesystem;

namespace {

using Commands = std::set<std::string>;  // "page: command"

fs::path root() { return lpp::testing::repository(); }

std::string trimmed(const std::string& line) {
  const auto begin = line.find_first_not_of(' ');
  const auto end = line.find_last_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
}

/// The commands of the blocks marked sh and console; what is continued on the next line is joined,
/// comments and output are left out.
void add_commands(const std::string& page, std::istream& in, Commands& out) {
  const std::regex fence("^ *```([a-z]*).*");
  const std::regex comment("(^| +)# .*$");
  bool inside = false;
  std::string language;
  std::string command;
  for (std::string line; std::getline(in, line);) {
    if (std::smatch match; std::regex_match(line, match, fence)) {
      inside = !inside;
      language = match[1];
      continue;
    }
    if (!inside || (language != "sh" && language != "console")) continue;
    std::string text = trimmed(line);
    if (language == "console") {
      if (command.empty() && !text.starts_with("$ ")) continue;  // output
      if (command.empty()) text.erase(0, 2);
    }
    text = trimmed(std::regex_replace(text, comment, ""));
    if (text.empty()) continue;
    command += (command.empty() ? "" : " ") + text;
    if (command.ends_with(" \\")) {
      command = trimmed(command.substr(0, command.size() - 1));
    } else if (!command.ends_with("|")) {
      out.insert(page + ": " + command);
      command.clear();
    }
  }
}

Commands in_docs() {
  std::set<fs::path> files{"README.md", "CONTRIBUTING.md",
                           "deploy/chart/local-path-provisioner/README.md", "examples/README.md",
                           "test/e2e/cluster/README.md"};
  for (const auto& entry : fs::directory_iterator(root() / "docs")) {
    if (entry.path().extension() == ".md") files.insert("docs" / entry.path().filename());
  }
  Commands out;
  for (const fs::path& file : files) {
    std::ifstream in(root() / file);
    REQUIRE_MESSAGE(in.good(), file.string());
    add_commands(file.string(), in, out);
  }
  return out;
}

/// "doc PAGE <<'C'" or "other PAGE 'why' <<'C'", and the command on the next line.
void add_from_walk(const std::string& script, Commands& out) {
  std::ifstream in(root() / script);
  REQUIRE_MESSAGE(in.good(), script);
  const std::regex begin("^ *(doc|other) ([^ ]+) ('[^']+' )?<<'C'$");
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, begin)) continue;
    CHECK_MESSAGE((match[1] == "other") == match[3].matched, line);
    std::string command;
    REQUIRE(std::getline(in, command));
    out.insert(match[2].str() + ": " + command);
  }
}

Commands in_walk() {
  Commands out;
  add_from_walk("test/docs/walk.sh", out);
  add_from_walk("test/docs/limits.sh", out);
  add_from_walk("test/docs/agents.sh", out);
  add_from_walk("test/docs/elsewhere.sh", out);
  return out;
}

Commands without(const Commands& all, const Commands& others) {
  Commands out;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::inserter(out, out.end()));
  return out;
}

}  // namespace

TEST_CASE("commands are those of shell blocks, joined, without comments and output") {
  std::istringstream text(
      "`no`\n```yaml\nno: 1\n```\n```sh\na 'b #c'   # no\n# no\nd \\\n  --e\nf |\n  g\n```\n"
      "  ```console\n  $ h   # no\n  no\n  ```\n");
  Commands found;
  add_commands("p", text, found);
  CHECK(found == Commands{"p: a 'b #c'", "p: d --e", "p: f | g", "p: h"});
}

TEST_CASE("each command in the docs is run by test/docs/walk.sh, or excused there") {
  const Commands docs = in_docs();
  const Commands walk = in_walk();
  CHECK(docs.size() > 50);
  for (const auto& command : without(docs, walk))
    FAIL_CHECK("not in test/docs/walk.sh: " << command);
  for (const auto& command : without(walk, docs)) FAIL_CHECK("not in the docs: " << command);
}
