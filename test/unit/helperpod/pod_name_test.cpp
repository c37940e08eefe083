// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "helperpod/manifest.h"
#include "text/dns_names.h"

using namespace lpp;
using namespace lpp::helperpod;
using operation::Kind;

TEST_CASE("the name of a helper pod is the old one as long as that is valid") {
  CHECK(pod_name("helper-pod", Kind::kMake, "pvc-0f") == "helper-pod-create-pvc-0f");
  CHECK(pod_name("helper-pod", Kind::kRemove, "pvc-0f") == "helper-pod-delete-pvc-0f");
  CHECK(pod_name("helper-pod", Kind::kResize, "pvc-0f") == "helper-pod-resize-pvc-0f");
  CHECK(pod_name("a.b", Kind::kMake, "c") == "a.b-create-c");
  const std::string just(128 - std::string("-create-c").size(), 'x');
  CHECK(pod_name(just, Kind::kMake, "c") == just + "-create-c");
}

TEST_CASE("names of helper pods are valid and different for any template and volume") {
  std::vector<std::string> volumes = {"pvc-1",  "pvc-2", "a.b",    std::string(253, 'v'),
                                      "A_B",    "-x-",   "a..b",   std::string(252, 'v') + "w",
                                      "ümlaut", "a b/c", "a-b-c-", ""};
  for (const std::string& start :
       {std::string(), std::string("helper-pod"), std::string(119, 't'), std::string(120, 't'),
        std::string(200, 't'), std::string(300, '-'), std::string("Bad_Name."),
        std::string(103, 't') + "."}) {
    std::vector<std::string> names;
    for (const auto& volume : volumes) {
      for (const Kind action : {Kind::kMake, Kind::kRemove}) {
        for (const int attempt : {1, 2, 16}) {
          names.push_back(pod_name(start, action, volume, attempt));
          CAPTURE(names.back());
          CHECK(text::is_dns_subdomain(names.back()));
          CHECK(names.back().size() <= 128);
          CHECK(names.back() == pod_name(start, action, volume, attempt));
        }
      }
    }
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  }
}

TEST_CASE("a long template name keeps the volume's name readable") {
  const std::string name = pod_name(std::string(200, 't'), Kind::kMake, "pvc-0f");
  CHECK(name.find("-create-pvc-0f-") != std::string::npos);
}
