// SPDX-License-Identifier: Apache-2.0
#include "config/config_parser.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fakes/check_contains.h"

namespace lpp::config {
namespace {

using Paths = std::vector<std::string>;

ParsedConfig parse(std::string_view text) {
  auto result = parse_config(text, "config.json");
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return *std::move(result);
}

std::string error_of(std::string_view text) {
  const auto result = parse_config(text, "config.json");
  if (result.ok()) return "(accepted)";
  CHECK(result.error().is(ErrorCode::kInvalid));
  return result.error().message;
}

bool has_warning(const ParsedConfig& parsed, std::string_view part) {
  for (const auto& warning : parsed.warnings) {
    if (warning.find(part) != std::string::npos) return true;
  }
  return false;
}

/// A configuration with one path of one node.
std::string with_path(const std::string& json_path) {
  return R"({"nodePathMap":[{"node":"n1","paths":[)" + json_path + "]}]}";
}

TEST_CASE("every key of a configuration is read") {
  const auto parsed = parse(R"({
    "cmdTimeoutSeconds": 30,
    "setupCommand": "/manager",
    "teardownCommand": "/remover",
    "nodePathMap": [
      {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/opt/local-path-provisioner"]},
      {"node": "n1", "paths": ["/data1", "/data2/"]},
      {"node": "n2", "paths": []}
    ],
    "storageClassConfigs": {
      "fast": {"nodePathMap": [{"node": "n1", "paths": ["/nvme"]}]},
      "shared": {"sharedFileSystemPath": "/mnt/nfs/./x/"}
    }
  })");
  const Config& config = parsed.config;
  CHECK(parsed.warnings == std::vector<std::string>{});
  CHECK(config.cmd_timeout == std::chrono::seconds(30));
  CHECK(config.setup_command == "/manager");
  CHECK(config.teardown_command == "/remover");
  REQUIRE(config.paths.paths_for("n1") != nullptr);
  CHECK(*config.paths.paths_for("n1") == Paths{"/data1", "/data2"});
  CHECK(*config.paths.paths_for("n9") == Paths{"/opt/local-path-provisioner"});
  CHECK(config.paths.paths_for("n2")->empty());  // listed: does not fall back
  CHECK_FALSE(config.paths.shared());
  REQUIRE(config.classes.size() == 2);
  CHECK(*config.classes.at("fast").paths_for("n1") == Paths{"/nvme"});
  CHECK(config.classes.at("fast").paths_for("n2") == nullptr);
  CHECK(config.classes.at("shared").shared_file_system_path == "/mnt/nfs/x");
  CHECK(config.classes.at("shared").shared());
}

TEST_CASE("the paths of an entry may have to be mount points, each entry by itself") {
  const auto parsed = parse(R"({
    "nodePathMap": [
      {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/disk"], "requireMount": true},
      {"node": "n1", "paths": ["/disk", "/opt/x"], "requireMount": false},
      {"node": "n2", "paths": ["/opt/x"]},
      {"node": "n3", "paths": ["/a", "/b"], "requireMount": true}
    ],
    "storageClassConfigs": {
      "fast": {"nodePathMap": [{"node": "n2", "paths": ["/nvme"], "requireMount": true}]}
    }
  })");
  CHECK(parsed.warnings == std::vector<std::string>{});
  const Config& config = parsed.config;
  CHECK(config.must_be_mounted("n9", "/disk"));
  CHECK_FALSE(config.must_be_mounted("n9", "/disk/of-another"));
  CHECK_FALSE(config.must_be_mounted("n1", "/disk"));
  CHECK_FALSE(config.must_be_mounted("n2", "/opt/x"));
  CHECK(config.must_be_mounted("n3", "/b"));
  CHECK(config.must_be_mounted("n2", "/nvme"));
  CHECK_FALSE(config.must_be_mounted("n1", "/nvme"));
  CHECK_FALSE(config.paths.must_be_mounted("n2", "/nvme"));
  CHECK_FALSE(config.must_be_mounted("n1", ""));
}

TEST_CASE("a class without an entry falls back to the common paths when there are any") {
  const auto both = parse(R"({"nodePathMap":[{"node":"n","paths":["/a"]}],
                              "storageClassConfigs":{"c":{"sharedFileSystemPath":"/s"}}})");
  CHECK(both.config.paths_for_class("c")->shared());
  REQUIRE(both.config.paths_for_class("other") != nullptr);
  CHECK(*both.config.paths_for_class("other")->paths_for("n") == Paths{"/a"});

  const auto only_classes = parse(R"({"storageClassConfigs":{"c":{"sharedFileSystemPath":"/s"}}})");
  CHECK(only_classes.config.paths_for_class("c") != nullptr);
  CHECK(only_classes.config.paths_for_class("other") == nullptr);
}

TEST_CASE("defaults hold for absent, null and non-positive values") {
  for (const char* timeout : {"", R"("cmdTimeoutSeconds":null,)", R"("cmdTimeoutSeconds":0,)",
                              R"("cmdTimeoutSeconds":-5,)"}) {
    CAPTURE(timeout);
    const auto parsed =
        parse("{" + std::string(timeout) + R"("setupCommand":null,"sharedFileSystemPath":"/s"})");
    CHECK(parsed.config.cmd_timeout == std::chrono::seconds(120));
    CHECK(parsed.config.setup_command.empty());
    CHECK(parsed.config.teardown_command.empty());
  }
  CHECK(parse(R"({"nodePathMap":[{"node":"n"},{"node":"m","paths":null}]})")
            .config.paths.paths_for("m")
            ->empty());
  CHECK(
      parse(R"({"cmdTimeoutSeconds":2147483647,"sharedFileSystemPath":"/s"})").config.cmd_timeout ==
      std::chrono::seconds(2147483647));
}

TEST_CASE("keys match without regard to case, the exact spelling first") {
  const auto parsed = parse(R"({"NODEPATHMAP":[{"Node":"n","PATHS":["/a"]}],
                                "CmdTimeoutSeconds":7,"setupcommand":"s"})");
  CHECK(*parsed.config.paths.paths_for("n") == Paths{"/a"});
  CHECK(parsed.config.cmd_timeout == std::chrono::seconds(7));
  CHECK(parsed.config.setup_command == "s");
  CHECK(parsed.warnings.empty());

  const auto twice = parse(R"({"sharedFileSystemPath":"/a","sharedfilesystempath":"/b",
                               "SHAREDFILESYSTEMPATH":"/c"})");
  CHECK(twice.config.paths.shared_file_system_path == "/a");
  CHECK(has_warning(twice, "is also spelled \"SHAREDFILESYSTEMPATH\""));
}

TEST_CASE("of a key given twice the last counts, with a warning") {
  const auto parsed = parse(R"({"sharedFileSystemPath":"/a","sharedFileSystemPath":"/b"})");
  CHECK(parsed.config.paths.shared_file_system_path == "/b");
  CHECK(has_warning(parsed, "key \"sharedFileSystemPath\" is given twice"));
}

TEST_CASE("unknown keys are named with the nearest known one, and do not stop the load") {
  const auto parsed = parse(R"({
    "nodePathMapp": [], "sharedFilesystemPaths": "", "zzz": 1, "comment": "hi",
    "nodePathMap": [{"node": "n", "path": ["/a"], "paths": ["/b"]}],
    "storageClassConfigs": {"c": {"sharedFileSystemPath": "/s", "nodePathmaps": 1}}})");
  CHECK(has_warning(parsed,
                    "config.json: unknown key \"nodePathMapp\" is ignored; did you mean "
                    "\"nodePathMap\"?"));
  CHECK(has_warning(parsed, "did you mean \"sharedFileSystemPath\"?"));
  CHECK(has_warning(parsed, "unknown key \"zzz\" is ignored"));
  CHECK_FALSE(has_warning(parsed, "\"zzz\" is ignored; did"));
  CHECK(has_warning(parsed, "storageClassConfigs[\"c\"].: unknown") == false);
  CHECK(has_warning(parsed, "storageClassConfigs[\"c\"]: unknown key \"nodePathmaps\""));
  CHECK(has_warning(parsed,
                    "nodePathMap[0]: unknown key \"path\" is ignored; did you mean "
                    "\"paths\"?"));
}

TEST_CASE("wrong types are errors that name the JSON path") {
  struct Case {
    const char* text;
    const char* says;
  };
  const std::vector<Case> cases = {
      {R"([])", "must be an object, is a list"},
      {R"(null)", "must be an object, is null"},
      {R"("x")", "must be an object, is \"x\""},
      {R"(12)", "must be an object, is 12"},
      {R"({"cmdTimeoutSeconds":"30","sharedFileSystemPath":"/s"})",
       "cmdTimeoutSeconds: must be an integer, is \"30\""},
      {R"({"cmdTimeoutSeconds":1.5,"sharedFileSystemPath":"/s"})", "cmdTimeoutSeconds: must be"},
      {R"({"cmdTimeoutSeconds":true,"sharedFileSystemPath":"/s"})", "cmdTimeoutSeconds: must be"},
      {R"({"cmdTimeoutSeconds":2147483648,"sharedFileSystemPath":"/s"})",
       "cmdTimeoutSeconds: must be at most 2147483647"},
      {R"({"cmdTimeoutSeconds":18446744073709551615,"sharedFileSystemPath":"/s"})",
       "cmdTimeoutSeconds: must be at most"},
      {R"({"cmdTimeoutSeconds":1e400,"sharedFileSystemPath":"/s"})", "config.json: "},
      {R"({"setupCommand":["a"],"sharedFileSystemPath":"/s"})",
       "setupCommand: must be a string, is a list"},
      {R"({"teardownCommand":{},"sharedFileSystemPath":"/s"})",
       "teardownCommand: must be a string"},
      {R"({"teardownCommand":"a\u0000b","sharedFileSystemPath":"/s"})",
       "teardownCommand: must not"},
      {R"({"sharedFileSystemPath":5})", "sharedFileSystemPath: must be a string, is 5"},
      {R"({"nodePathMap":{}})", "nodePathMap: must be a list, is an object"},
      {R"({"nodePathMap":[{"node":"n","paths":[],"requireMount":"yes"}]})",
       "nodePathMap[0].requireMount: must be true or false, is \"yes\""},
      {R"({"nodePathMap":[null]})", "nodePathMap[0]: must be an object, is null"},
      {R"({"nodePathMap":["n"]})", "nodePathMap[0]: must be an object, is \"n\""},
      {R"({"nodePathMap":[{"paths":["/a"]}]})", "nodePathMap[0].node: must not be empty"},
      {R"({"nodePathMap":[{"node":"","paths":["/a"]}]})", "nodePathMap[0].node: must not be"},
      {R"({"nodePathMap":[{"node":7,"paths":["/a"]}]})", "nodePathMap[0].node: must be a string"},
      {R"({"nodePathMap":[{"node":"n","paths":"/a"}]})",
       "nodePathMap[0].paths: must be a list, is \"/a\""},
      {R"({"nodePathMap":[{"node":"n","paths":["/a",null]}]})",
       "nodePathMap[0].paths[1]: must be a string, is null"},
      {R"({"storageClassConfigs":[]})", "storageClassConfigs: must be an object, is a list"},
      {R"({"storageClassConfigs":{"c":null}})",
       "storageClassConfigs[\"c\"]: must be an object, is null"},
      {R"({"storageClassConfigs":{"c":"x"}})", "storageClassConfigs[\"c\"]: must be an object"},
      {R"({"storageClassConfigs":{"":{"sharedFileSystemPath":"/s"}}})",
       "storageClassConfigs[\"\"]: the name of a class must not be empty"},
      {R"({"storageClassConfigs":{"c":{"nodePathMap":[{"node":"n","paths":["x"]}]}}})",
       "storageClassConfigs[\"c\"].nodePathMap[0].paths[0]: must be an absolute path, is \"x\""},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    const std::string message = error_of(c.text);
    CHECK_CONTAINS(message, c.says);
    CHECK(message.rfind("config.json: ", 0) == 0);
  }
}

TEST_CASE("exactly one mode is needed, at load and not only at use") {
  CHECK_CONTAINS(error_of("{}"), "needs nodePathMap, sharedFileSystemPath or storageClassConfigs");
  CHECK_CONTAINS(error_of(R"({"nodePathMap":[],"sharedFileSystemPath":""})"), "needs nodePathMap");
  CHECK_CONTAINS(error_of(R"({"storageClassConfigs":{}})"), "needs nodePathMap");
  CHECK_CONTAINS(error_of(R"({"storageClassConfigs":{"c":{}}})"),
                 "storageClassConfigs[\"c\"]: needs nodePathMap or sharedFileSystemPath");
  CHECK_CONTAINS(error_of(R"({"nodePathMap":[{"node":"n","paths":["/a"]}],
                              "sharedFileSystemPath":"/s"})"),
                 "sharedFileSystemPath: cannot be used together with nodePathMap");
  CHECK_CONTAINS(error_of(R"({"storageClassConfigs":{"c":{"sharedFileSystemPath":"/s",
                              "nodePathMap":[{"node":"n","paths":["/a"]}]}}})"),
                 "storageClassConfigs[\"c\"].sharedFileSystemPath: cannot be used together");
}

TEST_CASE("bad top-level paths beside classes only warn, because they were never read there") {
  const auto parsed = parse(R"({"nodePathMap":[{"node":"n","paths":["/a"]}],
                                "sharedFileSystemPath":"relative",
                                "storageClassConfigs":{"c":{"sharedFileSystemPath":"/s"}}})");
  CHECK(parsed.config.paths.empty());
  CHECK(parsed.config.paths_for_class("other") == nullptr);
  CHECK(has_warning(parsed, "sharedFileSystemPath: must be an absolute path"));
  CHECK(has_warning(parsed, "cannot be used together"));
}

TEST_CASE("paths that could never be right are refused with their place") {
  struct Case {
    const char* path;
    const char* says;
  };
  const std::vector<Case> cases = {
      {R"("")", "nodePathMap[0].paths[0]: must not be empty"},
      {R"("data")", "must be an absolute path, is \"data\""},
      {R"("./data")", "must be an absolute path"},
      {R"("/")", "must not be the root directory, is \"/\""},
      {R"("//")", "must not be the root directory"},
      {R"("/a/..")", "must not be the root directory"},
      {R"("/../..")", "must not be the root directory"},
      {R"("/etc")", "must not be a directory of the system, is \"/etc\""},
      {R"("/etc/")", "must not be a directory of the system"},
      {R"("/opt/../usr")", "must not be a directory of the system"},
      {R"("/usr/bin")", "must not be a directory of the system"},
      {R"("/usr/lib/x")", "must not be below /usr/lib"},
      {R"("/bin")", "must not be a directory of the system"},
      {R"("/sbin/x")", "must not be below /sbin"},
      {R"("/lib")", "must not be a directory"},
      {R"("/lib64")", "must not be a directory"},
      {R"("/boot/x")", "must not be below /boot"},
      {R"("/dev")", "must not be a directory"},
      {R"("/proc/1")", "must not be below /proc"},
      {R"("/sys")", "must not be a directory"},
      {R"("/var/lib/kubelet")", "must not be a directory"},
      {R"("/var/lib/kubelet/pods")", "must not be below /var/lib/kubelet"},
      {R"("/a\u0000b")", "must not hold control characters"},
      {R"("/a\nb")", "must not hold control characters"},
      {R"("/a\u007f")", "must not hold control characters"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.path);
    const std::string message = error_of(with_path(c.path));
    CHECK_CONTAINS(message, c.says);
    CHECK_CONTAINS(message, "nodePathMap[0].paths[0]");
    const std::string shared = "{\"sharedFileSystemPath\":" + std::string(c.path) + "}";
    CHECK_CONTAINS(error_of(shared),
                   c.path == std::string(R"("")") ? "needs" : "sharedFileSystemPath: must");
  }
  CHECK_CONTAINS(error_of(with_path("\"/" + std::string(256, 'n') + "\"")), "255 bytes");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "/abcdef";
  CHECK_CONTAINS(error_of(with_path("\"" + deep + "\"")), "too long");
}

TEST_CASE("paths that clusters use load without a word") {
  for (const char* path :
       {"/opt/local-path-provisioner", "/var/lib/rancher/k3s/storage",
        "/var/local-path-provisioner", "/mnt/disk1", "/data", "/tmp", "/srv/x", "/home/storage",
        "/libvirt", "/etcd", "/devices", "/var/lib/kubelet-volumes", "/usrdata", "/opt/ü mlaut"}) {
    CAPTURE(path);
    const auto parsed = parse(with_path("\"" + std::string(path) + "\""));
    CHECK(parsed.warnings == std::vector<std::string>{});
    CHECK(*parsed.config.paths.paths_for("n1") == Paths{path});
  }
}

TEST_CASE("paths that are unlikely to be meant load with a warning") {
  for (const char* path :
       {"/var", "/var/lib", "/home", "/root", "/root/x", "/run/x", "/usr/local/x", "/dev/shm/x",
        "/etc/x", "/var/lib/etcd", "/var/lib/docker/x"}) {
    CAPTURE(path);
    const auto parsed = parse(with_path("\"" + std::string(path) + "\""));
    REQUIRE(parsed.warnings.size() == 1);
    CHECK_CONTAINS(parsed.warnings[0],
                   "config.json: nodePathMap[0].paths[0]: \"" + std::string(path) + "\"");
  }
}

TEST_CASE("paths are cleaned as text, and the same path twice on a node is refused") {
  CHECK(*parse(with_path(R"("/a//b/./c/../d/")")).config.paths.paths_for("n1") == Paths{"/a/b/d"});
  CHECK_CONTAINS(error_of(with_path(R"("/a/b","/a/c/../b/")")),
                 "nodePathMap[0].paths[1]: path \"/a/b\" is listed twice for node \"n1\"");
}

TEST_CASE("a node listed twice is refused") {
  CHECK_CONTAINS(error_of(R"({"nodePathMap":[{"node":"n","paths":["/a"]},
                                              {"node":"n","paths":["/b"]}]})"),
                 "nodePathMap[1].node: node \"n\" is listed twice");
}

TEST_CASE("paths of one node inside one another are warned about, over all classes") {
  CHECK(has_warning(parse(with_path(R"("/a/b/c","/a")")),
                    "nodePathMap[0].paths[0]: \"/a/b/c\" lies inside \"/a\" of "
                    "nodePathMap[0].paths[1]"));
  // A name between the two in the order of letters does not hide it.
  CHECK(has_warning(parse(with_path(R"("/a","/a-b","/a/b")")), "\"/a/b\" lies inside \"/a\""));
  CHECK(has_warning(parse(R"({"nodePathMap":[{"node":"n","paths":["/a"]}],"storageClassConfigs":
                    {"c":{"nodePathMap":[{"node":"n","paths":["/a/x"]}]}}})"),
                    "storageClassConfigs[\"c\"].nodePathMap[0].paths[0]: \"/a/x\" lies inside"));
  // The same path for two classes, siblings and other nodes are usual.
  CHECK(parse(R"({"nodePathMap":[{"node":"n","paths":["/a","/ab"]},{"node":"m","paths":["/a/x"]}],
                  "storageClassConfigs":{"c":{"nodePathMap":[{"node":"n","paths":["/a"]}]}}})")
            .warnings.empty());
}

TEST_CASE("syntax errors give line and column") {
  struct Case {
    const char* text;
    const char* place;
  };
  const std::vector<Case> cases = {
      {"{\n  \"nodePathMap\": [\n    {,}\n  ]\n}", "config.json: line 3, column 6: "},
      {"{\"a\": tru}", "line 1, column 10: "},
      {"{", "line 1, column 2: "},
      {"{\"a\": \"x", "line 1, column "},
      {"{'a': 1}", "line 1, column 2: "},
      {"{\"a\": 1,}", "line 1, column 9: "},
      {"{\n\"a\": 01}", "line 2, column 7: "},
      {"{\"a\": \"\xff\"}", "line 1, column 8: "},
      {"{\"a\": \"\xc3", "line 1, column "},
      {"{\"a\": \"\\ud800\"}", "line 1, column "},
      {"{\"a\": \"tab\there\"}", "line 1, column 11: "},
      {"}{", "line 1, column 1: "},
      {"hello", "line 1, column 1: "},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    const std::string message = error_of(c.text);
    CHECK_CONTAINS(message, c.place);
    CHECK(message.find("json.exception") == std::string::npos);
    CHECK(message.size() < 600);
  }
  CHECK_CONTAINS(error_of(""), "config.json: is empty");
  CHECK_CONTAINS(error_of(" \n\t"), "is empty");
  CHECK_CONTAINS(error_of(std::string_view("\0\0", 2)), "line 1, column 1");
  CHECK_CONTAINS(error_of(std::string_view("{\"a\":\0 1}", 9)), "line 1, column 6");
}

TEST_CASE("text after the configuration is accepted with a warning, white space without") {
  const std::string good = R"({"sharedFileSystemPath":"/s"})";
  CHECK(parse(good + " \n\r\n\t").warnings.empty());
  const auto parsed = parse(good + "\n}} trailing {\"nodePathMap\":5}");
  CHECK(parsed.config.paths.shared_file_system_path == "/s");
  CHECK(has_warning(parsed, "line 2, column 1: text after the end of the configuration"));
  CHECK(parse("\xef\xbb\xbf" + good).config.paths.shared());  // a byte order mark
}

TEST_CASE("huge, deep and hostile texts are errors in reasonable time") {
  CHECK_CONTAINS(error_of(std::string(100'000, '[')), "nested more than 64 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK_CONTAINS(error_of(objects), "line 1, column 321: nested more than 64");
  CHECK_CONTAINS(error_of(std::string(10'000'000, ' ')), "10000000 bytes long");
  CHECK_CONTAINS(error_of("{\"a\":\"" + std::string(3'000'000, 'x')), "line 1, column ");

  std::string many = "{\"sharedFileSystemPath\":\"/s\"";
  for (int i = 0; i < 20'000; ++i) many += ",\"k" + std::to_string(i) + "\":1";
  CHECK(parse(many + "}").warnings.size() == 10);

  std::string twice = "{\"sharedFileSystemPath\":\"/s\"";
  for (int i = 0; i < 20'000; ++i) twice += ",\"k\":1";
  CHECK(parse(twice + "}").warnings.size() == 10);

  // As many nodes as fit into the limit, and many paths of one node.
  const auto nodes = [](int count) {
    std::string text = R"({"nodePathMap":[)";
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += ',';
      text += R"({"node":"n)" + std::to_string(i) + R"(","paths":["/d"]})";
    }
    return text + "]}";
  };
  CHECK(parse(nodes(20'000)).config.paths.node_path_map.size() == 20'000);
  CHECK_CONTAINS(error_of(nodes(150'000)), "bytes long");
  std::string paths = R"({"nodePathMap":[{"node":"n","paths":["/p")";
  for (int i = 0; i < 20'000; ++i) paths += ",\"/p" + std::to_string(i) + "\"";
  CHECK(parse(paths + "]}]}").config.paths.paths_for("n")->size() == 20'001);
  for (const char* number :
       {"1e308", "-1e308", "9223372036854775808", "1.5", "18446744073709551616"}) {
    CAPTURE(number);
    CHECK_CONTAINS(error_of(R"({"sharedFileSystemPath":"/s","cmdTimeoutSeconds":)" +
                            std::string(number) + "}"),
                   "cmdTimeoutSeconds");
  }

  std::string bad = R"({"nodePathMap":[)";
  for (int i = 0; i < 10'000; ++i) bad += (i > 0 ? ",1" : "1");
  const std::string message = error_of(bad + "]}");
  CHECK_CONTAINS(message, "nodePathMap[9]: ");
  CHECK_CONTAINS(message, "; and 9990 more");
  CHECK(message.size() < 2000);
}

TEST_CASE("all errors are reported at once") {
  const std::string message = error_of(R"({"cmdTimeoutSeconds":"x","nodePathMap":[
      {"node":"a","paths":["rel","/"]},{"node":"a","paths":["/etc"]}]})");
  CHECK_CONTAINS(message, "cmdTimeoutSeconds: must be");
  CHECK_CONTAINS(message, "; nodePathMap[0].paths[0]: must be an absolute");
  CHECK_CONTAINS(message, "; nodePathMap[0].paths[1]: must not be the root");
  CHECK_CONTAINS(message, "; nodePathMap[1].paths[0]: must not be a directory");
  CHECK_CONTAINS(message, "; nodePathMap[1].node: node \"a\" is listed twice");
}

TEST_CASE("every prefix and every changed byte of a configuration is handled") {
  const std::string text = R"({"cmdTimeoutSeconds":30,"nodePathMap":[{"node":"n","paths":["/a"]}],
    "storageClassConfigs":{"c":{"sharedFileSystemPath":"/s\u00fc"}},"setupCommand":null})";
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK_FALSE(parse_config(text.substr(0, i), "x").ok());
    for (const char c : {'\0', '"', '{', '}', '[', ']', '\\', '\xff', ',', '9'}) {
      std::string changed = text;
      changed[i] = c;
      const auto result = parse_config(changed, "x");
      if (!result.ok()) CHECK(result.error().message.size() < 1000);
    }
  }
}

}  // namespace
}  // namespace lpp::config
