// SPDX-License-Identifier: Apache-2.0
// The docs are one whole: every link in them leads somewhere, and every page is led to.

#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "places/places.h"

namespace lpp::app::docs_links {

namespace fs = std::filesystem;

namespace {

fs::path root() { return lpp::testing::repository(); }

/// A page without its code: links are not looked for there, and "# x" is no heading.
struct Page {
  std::string text{};
  std::set<std::string> anchors{};
  std::set<std::string> code{};  // in the line, between backticks
};

/// As GitHub makes them: lower case, punctuation away, blanks to hyphens.
std::string anchor_of(std::string_view heading) {
  std::string out;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-' || byte >= 0x80) {
      out += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      out += '-';
    }
  }
  return out;
}

Page read_page(std::istream& in) {
  const std::regex heading("^#{1,6} +(.*[^ #]) *#*$");
  const std::regex code("`[^`]*`");
  const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  Page page;
  std::map<std::string, int> seen;
  bool fenced = false;
  for (std::string line; std::getline(in, line);) {
    if (const auto begin = line.find_first_not_of(' ');
        begin != std::string::npos && line.compare(begin, 3, "```") == 0) {
      fenced = !fenced;
      continue;
    }
    if (fenced) continue;
    if (std::smatch match; std::regex_match(line, match, heading)) {
      const auto anchor = anchor_of(std::regex_replace(match[1].str(), link, "$1"));
      const int times = seen[anchor]++;
      page.anchors.insert(times == 0 ? anchor : anchor + "-" + std::to_string(times));
    }
    for (std::sregex_iterator it(line.begin(), line.end(), code), end; it != end; ++it) {
      page.code.insert(it->str().substr(1, it->str().size() - 2));
    }
    // A link whose text is code is a link; code that holds "](" is none.
    page.text += std::regex_replace(line, code, "code") + "\n";
  }
  return page;
}

/// Every Markdown page of the project, by its path from the root.
std::map<std::string, Page> pages() {
  std::map<std::string, Page> out;
  const auto add = [&](const fs::path& file) {
    if (file.extension() != ".md") return;
    std::ifstream in(file);
    REQUIRE(in.good());
    out[file.lexically_relative(root()).generic_string()] = read_page(in);
  };
  for (const auto& entry : fs::directory_iterator(root())) add(entry.path());
  for (const char* folder : {"docs", "deploy", "examples", "scripts", "src", "test"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder)) add(entry.path());
  }
  return out;
}

/// Targets of the links in a page, as they stand there.
std::vector<std::string> links(const Page& page) {
  const std::regex link(R"(\]\(([^) ]+)\))");
  std::vector<std::string> out;
  for (std::sregex_iterator it(page.text.begin(), page.text.end(), link), end; it != end; ++it) {
    out.push_back((*it)[1]);
  }
  return out;
}

struct Target {
  std::string file{};  // from the root; a page or any other file
  std::string anchor{};
};

Target resolve(const std::string& page, const std::string& link) {
  const auto hash = link.find('#');
  const std::string path = link.substr(0, hash);
  Target out;
  out.file = path.empty()
                 ? page
                 : (fs::path(page).parent_path() / path).lexically_normal().generic_string();
  if (hash != std::string::npos) out.anchor = link.substr(hash + 1);
  return out;
}

/// What is wrong with a link; "" = nothing.
std::string fault(const std::map<std::string, Page>& all, const std::string& page,
                  const std::string& link) {
  if (link.starts_with("https://")) return "";
  if (link.find("://") != std::string::npos) return "neither https nor a file of the project";
  const Target target = resolve(page, link);
  if (target.file.starts_with("..")) return "leads out of the project";
  if (!fs::exists(root() / target.file)) return "there is no " + target.file;
  if (target.anchor.empty()) return "";
  const auto found = all.find(target.file);
  if (found == all.end()) return target.file + " is not a page";
  return found->second.anchors.contains(target.anchor)
             ? ""
             : target.file + " has no heading for #" + target.anchor;
}

}  // namespace

TEST_CASE("a page's anchors are those of its headings, and code is not looked at") {
  std::istringstream text(
      "# One two\n## `flag` & more: \"x\"\n## One two\n```sh\n# no heading [a](nowhere.md)\n```\n"
      "`[b](nowhere.md)` and [`c`](here.md#d)\n");
  const Page page = read_page(text);
  CHECK(page.anchors == std::set<std::string>{"one-two", "flag--more-x", "one-two-1"});
  CHECK(links(page) == std::vector<std::string>{"here.md#d"});
}

TEST_CASE("every link in the docs leads to a file and a heading that exist") {
  const auto all = pages();
  std::size_t count = 0;
  for (const auto& one : all) {
    for (const std::string& link : links(one.second)) {
      ++count;
      CHECK_MESSAGE(fault(all, one.first, link) == "", one.first, ": ", link);
    }
  }
  CHECK(count > 50);
  CHECK(fault(all, "docs/install.md", "nowhere.md") != "");
  CHECK(fault(all, "docs/install.md", "operate.md#nowhere") != "");
  CHECK(fault(all, "docs/install.md", "../../x") != "");
}

TEST_CASE("every file of the project that a page names is there") {
  const std::regex path("(deploy|docs|examples|scripts|src|test)/[A-Za-z0-9_./-]*");
  std::size_t count = 0;
  for (const auto& one : pages()) {
    if (one.first == "CHANGELOG.md") continue;  // tells of what was
    for (const std::string& code : one.second.code) {
      if (!std::regex_match(code, path)) continue;
      ++count;
      CHECK_MESSAGE(fs::exists(root() / code), one.first, ": ", code);
    }
  }
  CHECK(count > 50);
}

TEST_CASE("every page of docs/ is one click away from docs/README.md, and that from the README") {
  const auto all = pages();
  const auto reached = [&](const std::string& from) {
    std::set<std::string> out;
    for (const std::string& link : links(all.at(from))) out.insert(resolve(from, link).file);
    return out;
  };
  CHECK(reached("README.md").contains("docs/README.md"));
  const auto index = reached("docs/README.md");
  for (const auto& one : all) {
    const std::string& name = one.first;
    if (!name.starts_with("docs/") || name == "docs/README.md") continue;
    CHECK_MESSAGE(index.contains(name), name, " is not in docs/README.md");
  }
}

}  // namespace lpp::app::docs_links
