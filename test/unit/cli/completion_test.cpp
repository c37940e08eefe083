// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdio>

#include "cli_bed.h"
#include "fakes/builders.h"
#include "harness/temp_dir.h"

using namespace lpp::testing;

namespace {

/// What is offered for the last of the words: values without their descriptions, with a blank
/// behind each; and the last line.
std::string offers(CliBed& bed, std::vector<std::string> words) {
  words.insert(words.begin(), {"__complete", "--"});
  const auto outcome = bed.run(words);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  std::string out;
  bool in_value = true;
  for (const char c : outcome.out) {
    if (c == '\t') in_value = false;
    if (c == '\n') in_value = true;
    if (in_value) out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string run_shell(const std::string& shell, const std::string& text) {
  const TempDir folder;
  std::FILE* pipe = popen((shell + " " + folder.write("script", text) + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return out;
}

}  // namespace

TEST_CASE("every command and flag is offered, with what it is") {
  CliBed bed;
  const auto names = bed.run({"__complete", "--", ""});
  for (const lpp::cli::Command& command : lpp::cli::commands()) {
    const std::string line = std::string(command.name) + "\t" + std::string(command.summary) + "\n";
    CHECK((names.out.find(line) != std::string::npos) == !command.hidden);
    if (command.hidden) continue;
    for (const lpp::cli::FlagGroup& group : lpp::cli::all_flags(command)) {
      for (const lpp::cli::Flag& flag : group.flags) {
        const std::string name = "--" + std::string(flag.name);
        CHECK((" " + offers(bed, {std::string(command.name), name})).find(" " + name + " ") !=
              std::string::npos);
      }
    }
  }
  CHECK(offers(bed, {"comp"}) == "completion :4 ");
  CHECK(offers(bed, {"--debug", "vol"}) == "volumes :4 ");
  CHECK(offers(bed, {"help", "vol"}) == "volumes :4 ");
  CHECK(offers(bed, {"--he"}) == "--help :4 ");
  CHECK(offers(bed, {}).find("volumes ") != std::string::npos);
}

TEST_CASE("values are offered where they are known, behind a blank and behind the sign") {
  CliBed bed;
  CHECK(offers(bed, {"version", "-o", ""}) == "json :4 ");
  CHECK(offers(bed, {"volumes", "-o", "j"}) == "json :4 ");
  CHECK(offers(bed, {"volumes", "--output=y"}) == "--output=yaml :4 ");
  CHECK(offers(bed, {"volumes", "-o=y"}) == "-o=yaml :4 ");
  CHECK(offers(bed, {"-A", "volumes", "-output", "wi"}) == "wide :4 ");
  CHECK(offers(bed, {"start", "--leader-elect="}) ==
        "--leader-elect=true --leader-elect=false :4 ");
  CHECK(offers(bed, {"completion", ""}) == "bash zsh fish :4 ");
  CHECK(offers(bed, {"completion", "bash", ""}) == ":4 ");
  CHECK(offers(bed, {"check", "-f", ""}) == ":0 ");
  CHECK(offers(bed, {"check", "--config=a"}) == ":0 ");
  CHECK(offers(bed, {"nothing", ""}) == ":4 ");
  CHECK(offers(bed, {"volumes", "--nothing="}) == ":4 ");
  CHECK(bed.requests.empty());  // no cluster was asked
}

TEST_CASE("namespaces, claims, nodes and the kubeconfig's names are asked for") {
  CliBed bed;
  bed.kubeconfig_names = {.contexts = {"home", "work"}, .clusters = {"c"}, .users = {"eve", "bob"}};
  bed.serve("/api/v1/namespaces?",
            {{{"metadata", {{"name", "web"}}}}, {{"metadata", {{"name", "default"}}}}});
  bed.serve("/namespaces/default/persistentvolumeclaims?", {claim("data").json()});
  bed.serve("/namespaces/web/persistentvolumeclaims?",
            {claim("db").ns("web").json(), claim("cache").ns("web").json()});
  bed.serve("/api/v1/persistentvolumeclaims?",
            {claim("data").json(), claim("db").ns("web").json()});
  bed.serve("/nodes?", {node("n1").json(), node("n2").json()});
  bed.serve("/storageclasses?", {storage_class("a").json(), storage_class("b").json()});
  CHECK(offers(bed, {"volumes", "-n", ""}) == "web default :4 ");
  CHECK(offers(bed, {"volumes", "-n", "w"}) == "web :4 ");
  CHECK(offers(bed, {"volumes", "-nw"}) == ":4 ");
  CHECK(offers(bed, {"volumes", "--namespace=w"}) == "--namespace=web :4 ");
  CHECK(offers(bed, {"volumes", ""}) == "data :4 ");
  CHECK(offers(bed, {"volumes", "data", "-nweb", ""}) == "db cache :4 ");
  CHECK(offers(bed, {"-n", "web", "volumes", "d"}) == "db :4 ");
  CHECK(offers(bed, {"volumes", "web/"}) == "web/db web/cache :4 ");
  CHECK(offers(bed, {"volumes", "-A", ""}) == "default/data web/db :4 ");
  CHECK(offers(bed, {"explain-path", "web/d"}) == "web/db :4 ");
  CHECK(offers(bed, {"explain-path", "--node", ""}) == "n1 n2 :4 ");
  CHECK(offers(bed, {"volumes", "--provisioner-name", ""}) == "rancher.io/local-path :4 ");
  bed.requests.clear();
  CHECK(offers(bed, {"volumes", "--context", ""}) == "home work :4 ");
  CHECK(offers(bed, {"volumes", "--user", "e"}) == "eve :4 ");
  CHECK(offers(bed, {"volumes", "--cluster", ""}) == "c :4 ");
  CHECK(bed.requests.empty());
  CHECK(offers(bed, {"volumes", "--context=work", "--as", "bob", "-n", "w"}) == "web :4 ");
  REQUIRE(bed.requests.size() == 1);
  CHECK(bed.requests.front().choice.context == "work");
  CHECK(bed.requests.front().impersonate.user == "bob");
}

TEST_CASE("a cluster that does not answer, or refuses, offers nothing and says nothing") {
  CliBed none;
  none.connect_error = lpp::Error{lpp::ErrorCode::kInvalid, "no configuration"};
  CHECK(offers(none, {"volumes", ""}) == ":4 ");
  CHECK(offers(none, {"volumes", "--as-group", "g", "-n", ""}) == ":4 ");
  CliBed forbidden;
  forbidden.transport->on("GET", "").always([](const auto&) {
    return lpp::k8s::Response{403, "{}", "application/json"};
  });
  CHECK(offers(forbidden, {"volumes", ""}) == ":4 ");
}

TEST_CASE("the script for bash puts words together, asks the program, and offers its values") {
  CliBed bed;
  const auto script = bed.run({"completion", "bash"});
  REQUIRE(script.code == 0);
  const auto offered = [&](const std::string& words) {
    return run_shell("bash --norc", script.out + R"(
program() {
  case "$*" in
    "__complete -- volumes -o j") printf 'json\tas JSON\n:4\n' ;;
    "__complete -- volumes --output=j") printf -- '--output=json\n:4\n' ;;
    "__complete -- volumes --output=") printf -- '--output=json\n--output=yaml\n:4\n' ;;
    "__complete -- volumes --kubeconfig=k --context ") printf 'a\nb\n:4\n' ;;
    "__complete -- check -f /etc/pass") printf ':0\n' ;;
    "__complete -- ") printf 'volumes\tlist volumes\n:4\n' ;;
    "__complete -- silent") ;;
    *) printf 'unexpected: %s\n:4\n' "$*" ;;
  esac
}
COMP_WORDS=(program )" + words + R"()
COMP_CWORD=$((${#COMP_WORDS[@]}-1))
_local_path_provisioner
printf '[%s]' "${COMPREPLY[@]}"
)");
  };
  CHECK(offered("volumes -o j") == "[json]");
  CHECK(offered("volumes --output = j") == "[json]");
  CHECK(offered("volumes --output =") == "[json][yaml]");
  CHECK(offered("volumes --kubeconfig = k --context ''") == "[a][b]");
  CHECK(offered("check -f /etc/pass").find("[/etc/passwd]") != std::string::npos);
  CHECK(offered("''") == "[volumes]");
  CHECK(offered("silent") == "[]");
}

TEST_CASE("each shell has a script that asks the program; another shell is refused") {
  CliBed bed;
  CHECK(bed.run({"completion", "zsh"}).out.starts_with("#compdef local-path-provisioner"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    CHECK(bed.run({"completion", shell}).out.find(" __complete -- ") != std::string::npos);
  }
  CHECK(bed.run({"completion", "csh"}).code == 2);
  CHECK(bed.run({"completion"}).code == 2);
}

TEST_CASE("the version is one line or JSON") {
  CliBed bed;
  CHECK(bed.run({"version"}).out == "local-path-provisioner version 1.2.3\n");
  CHECK(bed.run({"version", "-o", "json"}).out == "{\n  \"version\": \"1.2.3\"\n}\n");
  CHECK(bed.run({"version", "-o", "xml"}).code == 2);
}
