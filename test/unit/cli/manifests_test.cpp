// SPDX-License-Identifier: Apache-2.0
#include "cli/manifests.h"

#include <doctest/doctest.h>

using lpp::cli::kind_and_name;
using lpp::cli::read_manifest;

TEST_CASE("every document of a manifest is read, with its file and line") {
  const auto objects = read_manifest(
      "# a comment\n"
      "kind: A\n"
      "metadata: {name: a}\n"
      "---\n"
      "---\n"
      "# only a comment\n"
      "--- # behind dashes\n"
      "kind: B\n"
      "metadata: {name: b, namespace: ns}\n"
      "data:\n"
      "  text: |\n"
      "    --- not a document\n"
      "...\n"
      "---\n"
      "{\"kind\": \"C\"}\n",
      "m.yaml");
  REQUIRE(objects.ok());
  REQUIRE(objects->size() == 3);
  CHECK((*objects)[0].place == "m.yaml:2");
  CHECK(kind_and_name((*objects)[0].object) == "A a");
  CHECK((*objects)[1].place == "m.yaml:8");
  CHECK(kind_and_name((*objects)[1].object) == "B ns/b");
  CHECK((*objects)[1].object["data"]["text"] == "--- not a document\n");
  CHECK((*objects)[2].place == "m.yaml:15");
}

TEST_CASE("the items of lists are objects of their own, also in lists of lists") {
  const auto objects = read_manifest(
      "kind: List\nitems:\n- kind: A\n- kind: BList\n  items: [{kind: B}, 5]\n", "m.yaml");
  REQUIRE(objects.ok());
  REQUIRE(objects->size() == 2);
  CHECK((*objects)[1].object["kind"] == "B");
}

TEST_CASE("what is not a manifest is refused with file and line") {
  const auto broken = read_manifest("kind: A\n---\nkind: B\nb: [\n", "m.yaml");
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().message.starts_with("m.yaml: line "));
  const auto list = read_manifest("kind: A\n---\n- 1\n", "m.yaml");
  REQUIRE_FALSE(list.ok());
  CHECK(list.error().message == "m.yaml: line 3: is not a Kubernetes object");
  CHECK(read_manifest("", "m.yaml")->empty());
  CHECK(read_manifest("\n---\n# nothing\n", "m.yaml")->empty());
}
