// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli_bed.h"
#include "fakes/builders.h"

namespace lpp::testing {

inline constexpr const char* kOnDisk = "/opt/a/pvc-1_web_data";

/// A cluster with nodes n1 and n2, whose objects a test adds to before it runs a command. What a
/// command writes is kept, and answered as by an API server without a mind of its own.
struct DirectoryBed : CliBed {
  std::vector<nlohmann::json> classes{storage_class().json()};
  std::vector<nlohmann::json> claims{};
  std::vector<nlohmann::json> volumes{};
  std::vector<nlohmann::json> nodes{node("n1").json(), node("n2").json()};
  std::vector<nlohmann::json> pods{};         // of all namespaces
  std::vector<nlohmann::json> helper_pods{};  // with their label
  std::vector<nlohmann::json> orphans{};
  nlohmann::json left_out = nlohmann::json::object();
  int orphans_status = 200;
  std::function<void(const nlohmann::json& volume)> after_create{};
  std::string config = R"({"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES",
                                            "paths": ["/opt/a", "/opt/b"]},
                                           {"node": "n2", "paths": ["/opt/c"]}]})";

  static nlohmann::json orphan(const std::string& why = "NoVolume") {
    return {{"node", "n1"},        {"path", kOnDisk}, {"volume", why == "NoRecord" ? "" : "pvc-1"},
            {"claim", "web/data"}, {"uid", "1"},      {"size", std::int64_t{5} << 30U},
            {"since", 1},          {"why", why},      {"message", "it is said"}};
  }
  static k8s::Response answer(int status, const nlohmann::json& body) {
    return {.status = status, .body = body.dump(), .content_type = "application/json"};
  }
  static k8s::Response failure(int status, const std::string& reason) {
    return answer(status, {{"kind", "Status"}, {"reason", reason}, {"code", status}});
  }

  Outcome run_command(std::vector<std::string> arguments) {
    if (!served_) serve_all();
    served_ = true;
    return run(arguments);
  }
  std::vector<k8s::Request> writes() const {
    auto all = transport->requests();
    std::erase_if(all, [](const auto& one) { return one.method == "GET"; });
    return all;
  }
  /// The volumes that were made.
  std::vector<nlohmann::json> made() const {
    std::vector<nlohmann::json> all;
    for (const auto& one : writes()) {
      if (one.method == "POST") all.push_back(nlohmann::json::parse(one.body));
    }
    return all;
  }

 private:
  /// The list may change while a command runs.
  void list_of(const std::string& part, const std::vector<nlohmann::json>& objects) {
    transport->on("GET", part).always([&objects](const auto&) {
      return answer(200, {{"items", objects}});
    });
  }
  void serve_all() {
    nlohmann::json daemon = pod("daemon-1").ns("local-path-storage").phase("Running").json();
    daemon["spec"]["containers"] =
        nlohmann::json::array({{{"name", "main"},
                                {"image", "local-path-provisioner:1"},
                                {"command", {"local-path-provisioner", "start"}}}});
    list_of("/storageclasses", classes);
    list_of("/persistentvolumeclaims?", claims);
    list_of("/persistentvolumes?", volumes);
    list_of("/nodes?", nodes);
    list_of("/pods?limit=500&fieldSelector=", pods);
    list_of("/pods?fieldSelector=", pods);
    transport->on("GET", "/daemon-1%3A8080/proxy/orphans").always([this](const auto&) {
      return answer(orphans_status, {{"orphans", orphans}, {"leftOut", left_out}});
    });
    transport->on("GET", "/namespaces/local-path-storage/pods?")
        .always([this, daemon](const k8s::Request& request) {
          const bool helpers = request.target.find("labelSelector") != std::string::npos;
          return answer(200, {{"items", helpers ? nlohmann::json(helper_pods)
                                                : nlohmann::json::array({daemon})}});
        });
    transport->on("GET", "/configmaps/local-path-config").always([this](const auto&) {
      return answer(200, config_map("local-path-config").data("config.json", config).json());
    });
    transport->on("POST", "/persistentvolumes").always([this](const k8s::Request& request) {
      nlohmann::json made = nlohmann::json::parse(request.body);
      made["metadata"]["uid"] = "uid-made";
      if (after_create) after_create(made);
      return answer(201, made);
    });
    transport->on("PATCH", "/persistentvolumes/").always([](const auto&) {
      return answer(200, nlohmann::json::object());
    });
    transport->on("DELETE", "/persistentvolumes/").always([](const auto&) {
      return answer(200, nlohmann::json::object());
    });
    serve_nothing_else();
  }

  bool served_ = false;
};

}  // namespace lpp::testing
