// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cli_bed.h"
#include "fakes/builders.h"

using namespace lpp::testing;

namespace {

constexpr const char* kFile = "some-file";

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// What may be wrong with a file; "" = it is not there.
const std::vector<std::string> kBad{"",  // first
                                    "a: [",
                                    "hello",
                                    "[1]",
                                    "{",
                                    R"({"nodePathMap": 7})",
                                    R"({"nodePathMap": [{"node": "n", "paths": ["relative"]}]})",
                                    "kind: ConfigMap\nmetadata: {name: local-path-config}\ndata: "
                                    "{config.json: '{', helperPod.yaml: "
                                    "'a: ['}\n",
                                    "kind: Pod\nspec: 7\n"};

struct FileBed : CliBed {
  explicit FileBed(const std::string& text) {
    if (!text.empty()) files[kFile] = text;
    serve("/storageclasses", {storage_class().json()});
    serve("/persistentvolumeclaims?", {claim("data").json()});
    serve_nothing_else();
  }
};

}  // namespace

TEST_CASE("a finding of check names its file once, whatever is wrong with it") {
  for (const char* flag : {"--manifest", "--config", "--helper-pod-file"}) {
    for (const std::string& text : kBad) {
      CAPTURE(flag);
      CAPTURE(text);
      FileBed bed(text);
      const auto outcome = bed.run({"check", "-ojson", flag, kFile});
      const auto report = nlohmann::json::parse(outcome.out);
      for (const auto& finding : report["findings"]) {
        CAPTURE(finding.dump());
        CHECK(times(finding["place"], kFile) <= 1);
        CHECK(times(finding["message"], kFile) == 0);
      }
    }
  }
}

TEST_CASE("an error of explain-path names its file once, whatever is wrong with it") {
  for (const char* flag : {"--manifest", "--config"}) {
    for (const std::string& text : kBad) {
      CAPTURE(flag);
      CAPTURE(text);
      FileBed bed(text);
      const auto outcome = bed.run({"explain-path", "default/data", "--node", "n", flag, kFile});
      CAPTURE(outcome.err);
      CHECK(outcome.code == 1);
      CHECK(times(outcome.err, kFile) <= 1);
      if (text.empty()) CHECK(times(outcome.err, kFile) == 1);
    }
  }
}
