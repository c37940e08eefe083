// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "devcluster/node/container_setup.h"
#include "devcluster/node/expansion.h"
#include "devcluster/node/volumes.h"

using lpp::devcluster::expand_variables;
using lpp::devcluster::image_is_known;

TEST_CASE("variables are expanded by the kubelet's rules") {
  const std::map<std::string, std::string, std::less<>> known{
      {"A", "one"}, {"B", "$(A)"}, {"EMPTY", ""}, {"with space", "odd"}};
  const auto expand = [&](std::string_view text) {
    return expand_variables(text, [&](std::string_view name) -> const std::string* {
      const auto found = known.find(name);
      return found == known.end() ? nullptr : &found->second;
    });
  };
  const std::map<std::string, std::string> cases{
      {"", ""},
      {"plain", "plain"},
      {"$(A)", "one"},
      {"x$(A)y$(A)z", "xoneyonez"},
      {"$(B)", "$(A)"},  // values are not expanded again
      {"[$(EMPTY)]", "[]"},
      {"$(UNKNOWN)", "$(UNKNOWN)"},
      {"$$(A)", "$(A)"},  // escaped
      {"$$$(A)", "$one"},
      {"$$$$(A)", "$$(A)"},
      {"$A ${A} $", "$A ${A} $"},
      {"$(A", "$(A"},          // never closed
      {"$(A$(A)", "$(A$(A)"},  // one reference with an odd name
      {"$((A))", "$((A))"},
      {"$()", "$()"},
      {"$(with space)", "odd"},
      {"100$", "100$"},
      {"$$", "$"}};
  for (const auto& one : cases) {
    CAPTURE(one.first);
    CHECK(expand(one.first) == one.second);
  }
}

TEST_CASE("images that stand for busybox are recognised in every spelling") {
  for (const char* image :
       {"busybox", "busybox:1.37", "busybox@sha256:00", "docker.io/library/busybox:latest",
        "rancher/library-busybox:1.32.1", "docker.io/rancher/mirrored-library-busybox",
        "registry.example:5000/busybox:1", "localhost/busybox", "localhost:5000/busybox"}) {
    CAPTURE(image);
    CHECK(image_is_known(image, {}));
  }
  for (const char* image : {"", "busybox2", "nginx", "docker.io/nginx:1", "me/busybox", ":"}) {
    CAPTURE(image);
    CHECK_FALSE(image_is_known(image, {}));
  }
  CHECK(image_is_known("me/mine:1", {"me/mine"}));
  CHECK(image_is_known("quay.example/me/mine:1", {"quay.example/me/mine"}));
  CHECK(lpp::devcluster::image_repository("host:5000/me/mine:1@sha256:0") == "host:5000/me/mine");
  CHECK(lpp::devcluster::image_repository("host:5000/me/mine") == "host:5000/me/mine");
}
