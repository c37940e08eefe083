// SPDX-License-Identifier: Apache-2.0
// Other people's objects, as large as an API server takes them, and more of them than there is
// memory: made while they are sent, for a cluster that holds them would need the memory itself.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "fakes/eventually.h"
#include "fakes/setting.h"
#include "harness/daemon_process.h"
#include "harness/http_get.h"
#include "harness/must.h"
#include "harness/temp_dir.h"
#include "harness/test_server.h"
#include "support/daemon_program.h"
#include "unit/k8s/protobuf_message.h"

namespace lpp::testing {
namespace {

constexpr int kLabels = 38'000;  // 1 MiB of them

enum class Format { kJson, kProtobuf };

struct LargeKind {
  std::string name{};
  std::string ns{};
  std::string more_json{};  // of the object, after its metadata
  Message more_protobuf{};
  bool whole_cluster = true;  // the server has as many as the test wants; else one
};

const std::map<std::string, LargeKind>& kinds() {
  static const std::string kTemplate =
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: helper-pod\nspec:\n  containers:\n"
      "  - name: helper-pod\n    image: busybox\n";
  static const std::map<std::string, LargeKind> kKinds{
      {"persistentvolumeclaims",
       {.name = "PersistentVolumeClaim",
        .ns = "strangers",
        .more_json = R"("spec":{"storageClassName":"theirs"})",
        .more_protobuf = Message().message(2, Message().text(5, "theirs"))}},
      {"persistentvolumes",
       {.name = "PersistentVolume",
        .more_json = R"("spec":{"csi":{"driver":"theirs"}})",
        .more_protobuf = Message().message(2, Message().text(6, "theirs"))}},
      {"storageclasses",
       {.name = "StorageClass",
        .more_json = R"("provisioner":"theirs")",
        .more_protobuf = Message().text(2, "theirs")}},
      {"nodes",
       {.name = "PartialObjectMetadata", .more_json = R"("kind":"PartialObjectMetadata")"}},
      {"configmaps",
       {.name = "ConfigMap",
        .ns = "local-path-storage",
        .more_json =
            R"("data":{"helperPod.yaml":"apiVersion: v1\nkind: Pod\nmetadata:\n  name: helper-pod\nspec:\n  containers:\n  - name: helper-pod\n    image: busybox\n"})",
        .more_protobuf = Message().entry(2, "helperPod.yaml", kTemplate),
        .whole_cluster = false}},
  };
  return kKinds;
}

/// An API server that has as many large objects of each kind as it is told, and sends each of them
/// once more in a watch.
class LargeServer {
 public:
  LargeServer(Format format, int objects) : format_(format), objects_(objects) {
    Message labels;
    for (int i = 0; i < kLabels; ++i) {
      const std::string key = fmt::format("l{:05}", i);
      labels.entry(11, key, "value-of-it");
      json_labels_ += fmt::format(R"({}"{}":"value-of-it")", i == 0 ? "" : ",", key);
    }
    protobuf_labels_ = labels.bytes();
  }

  int port() const { return server_.port(); }

 private:
  static std::string length_of(std::size_t length) {
    std::string bytes;
    for (; length >= 0x80; length >>= 7U) bytes += static_cast<char>(0x80U | (length & 0x7FU));
    return bytes + static_cast<char>(length);
  }

  /// An object around the labels: what comes before them, and after.
  std::pair<std::string, std::string> object(const LargeKind& kind, int number) const {
    const std::string name =
        kind.whole_cluster ? fmt::format("theirs-{:04}", number) : "local-path-config";
    const std::string version = std::to_string(1000 + number);
    if (format_ == Format::kJson) {
      return {
          fmt::format(
              R"({{"metadata":{{"name":"{}","namespace":"{}","uid":"u-{}","resourceVersion":"{}","labels":{{)",
              name, kind.ns, name, version),
          "}}," + kind.more_json + "}"};
    }
    const std::string meta =
        Message().text(1, name).text(3, kind.ns).text(5, "u-" + name).text(6, version).bytes();
    return {"\x0a" + length_of(meta.size() + protobuf_labels_.size()) + meta,
            kind.more_protobuf.bytes()};
  }

  std::string_view labels() const {
    return format_ == Format::kJson ? json_labels_ : protobuf_labels_;
  }

  bool answer(Exchange& exchange) const {
    const std::string& line = exchange.request().target;
    const auto has = [&](std::string_view text) { return line.find(text) != std::string::npos; };
    const auto number = [&](const std::string& name, int otherwise) {
      const auto at = line.find(name + "=");
      return at == std::string::npos ? otherwise : std::stoi(line.substr(at + name.size() + 1));
    };
    static const LargeKind kNone{.name = "Pod", .whole_cluster = false};
    const LargeKind* kind = &kNone;
    for (const auto& [plural, one] : kinds()) {
      if (has("/" + plural + "?")) kind = &one;
    }
    if (exchange.request().method != "GET") return exchange.respond(403, "");
    const int all = kind == &kNone ? 0 : kind->whole_cluster ? objects_ : 1;
    if (has("watch=true")) return watch(exchange, *kind, all);
    const int begin = number("continue", 0);
    return list(exchange, *kind, begin, std::min(all, begin + number("limit", all)), all);
  }

  bool list(Exchange& exchange, const LargeKind& kind, int begin, int end, int all) const {
    const std::string next = end < all ? std::to_string(end) : "";
    std::vector<std::string> own;  // what stands between the labels
    std::size_t size = 0;
    if (format_ == Format::kJson) {
      own.push_back(fmt::format(
          R"({{"kind":"{}List","metadata":{{"resourceVersion":"5000","continue":"{}"}},"items":[)",
          kind.name, next));
      for (int i = begin; i < end; ++i) {
        auto [before, after] = object(kind, i);
        own.back() += (i == begin ? "" : ",") + before;
        own.push_back(std::move(after));
      }
      own.back() += "]}";
    } else {
      own.push_back(Message().message(1, Message().text(2, "5000").text(3, next)).bytes());
      for (int i = begin; i < end; ++i) {
        auto [before, after] = object(kind, i);
        own.back() +=
            "\x12" + length_of(before.size() + protobuf_labels_.size() + after.size()) + before;
        own.push_back(std::move(after));
      }
      for (const auto& text : own) size += text.size();
      size += protobuf_labels_.size() * static_cast<std::size_t>(end - begin);
      own.front() = std::string("k8s\0", 4) +
                    Message().message(1, Message().text(2, kind.name + "List")).bytes() + "\x12" +
                    length_of(size) + own.front();
      size = 0;
    }
    for (const auto& text : own) size += text.size();
    size += labels().size() * static_cast<std::size_t>(end - begin);
    if (!exchange.send(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", size))) {
      return false;
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (i > 0 && !exchange.send(labels())) return false;
      if (!exchange.send(own[i])) return false;
    }
    return true;
  }

  /// All of them change, and then nothing happens.
  bool watch(Exchange& exchange, const LargeKind& kind, int all) const {
    if (!exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")) return false;
    for (int i = 0; i < all; ++i) {
      const auto [before, after] = object(kind, 5000 + i);
      std::string begin = R"({"type":"MODIFIED","object":)" + before;
      std::string end = after + "}\n";
      if (format_ == Format::kProtobuf) {
        const std::size_t object_size = before.size() + protobuf_labels_.size() + after.size();
        const std::string unknown = std::string("k8s\0", 4) +
                                    Message().message(1, Message().text(2, kind.name)).bytes() +
                                    "\x12" + length_of(object_size) + before;
        const std::size_t unknown_size = unknown.size() + protobuf_labels_.size() + after.size();
        const std::string raw = "\x0a" + length_of(unknown_size) + unknown;
        const std::size_t raw_size = raw.size() + protobuf_labels_.size() + after.size();
        const std::string event =
            Message().text(1, "MODIFIED").bytes() + "\x12" + length_of(raw_size) + raw;
        const auto frame =
            static_cast<std::uint32_t>(event.size() + protobuf_labels_.size() + after.size());
        begin.clear();
        for (const unsigned shift : {24U, 16U, 8U, 0U}) {
          begin += static_cast<char>((frame >> shift) & 0xFFU);
        }
        begin += event;
        end = after;
      }
      if (!exchange.send(begin) || !exchange.send(labels()) || !exchange.send(end)) {
        return false;
      }
    }
    exchange.wait_for_close();
    return false;
  }

  const Format format_;
  const int objects_;
  std::string json_labels_;
  std::string protobuf_labels_;
  TestServer server_{{.tls = false}, [this](Exchange& exchange) { return answer(exchange); }};
};

int events_seen(int port) {
  const auto metrics = http_get(port, "/metrics");
  if (!metrics.ok()) return 0;
  constexpr std::string_view kCounter = "\nlocal_path_provisioner_reflector_events_total{";
  double seen = 0;
  for (auto at = metrics->body.find(kCounter); at != std::string::npos;
       at = metrics->body.find(kCounter, at + 1)) {
    seen += std::stod(metrics->body.substr(metrics->body.find("} ", at) + 2));
  }
  return static_cast<int>(seen);
}

/// The most memory that the daemon took until it had listed and watched so many objects of a kind.
int peak_with(Format format, int objects) {
  const LargeServer server(format, objects);
  const TempDir folder;
  std::ofstream(folder.path("kubeconfig")) << fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: "
      "{{server: "
      "\"http://127.0.0.1:{}\"}}\ncontexts:\n- name: c\n  context: {{cluster: c, user: "
      "u}}\nusers:\n"
      "- name: u\n  user: {{}}\n",
      server.port());
  std::ofstream(folder.path("config.json")) << R"({"sharedFileSystemPath":"/data"})";
  const auto daemon = LPP_MUST(DaemonProcess::start(
      {.program = daemon_program(),
       .args = {"--leader-elect=false", "--kubeconfig", folder.path("kubeconfig"), "--config",
                folder.path("config.json")},
       .log_file = folder.path("log")}));
  LPP_MUST(daemon->wait_ready(std::chrono::minutes(5)));
  // Each kind of which there are many, and the one ConfigMap, all of which changed.
  const int changes = 4 * objects + 1;
  const auto all_seen = [&] { return events_seen(daemon->health_port()) >= changes; };
  REQUIRE(eventually(all_seen, std::chrono::minutes(5), std::chrono::milliseconds(100)));
  const int peak = daemon->peak_mib();
  LPP_MUST(daemon->terminate(std::chrono::seconds(12)));
  return peak;
}

}  // namespace

TEST_CASE("foreign objects of 1 MiB each, hundreds of each kind, fit into 40 MiB") {
  const int most = setting("LPP_LARGE_OBJECTS", is_sanitized() ? 20 : 200);  // each comes twice
  for (const Format format : {Format::kProtobuf, Format::kJson}) {
    const int few = peak_with(format, 1);
    const int many = peak_with(format, format == Format::kProtobuf ? most : most / 5);
    const std::string name = format == Format::kProtobuf ? "protobuf" : "JSON";
    MESSAGE(name, ": ", few, " MiB with one, ", many, " MiB with all");
    // Sanitizers keep what was freed.
    if (!is_sanitized()) CHECK(many <= 40);
  }
}

}  // namespace lpp::testing
