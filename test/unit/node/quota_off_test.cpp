// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/strings.h"
#include "node/quota_errors.h"
#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// File systems without limits that could have some (test/quota/run.sh).

TEST_CASE("what is a part of a mount is not to be mounted anew by itself") {
  for (const char* type : {"xfs", "ext4"}) {
    CAPTURE(type);
    Mount mount{.root = "/", .point = "/mnt/disk", .type = type, .source = "/dev/sdb"};
    const auto says = [&](const std::string& part) {
      return limits_are_off(mount, false).message.find(part) != std::string::npos;
    };
    CHECK(says("umount /mnt/disk && "));
    CHECK(says("mount -o prjquota /dev/sdb /mnt/disk"));
    mount.point = "/mnt/a disk";
    CHECK(says("umount '/mnt/a disk' && "));
    mount.point = "/mnt/disk";
    mount.root = "/opt/local-path-provisioner";  // as a helper pod sees a directory of the disk
    CHECK_FALSE(says("umount /mnt/disk"));
    CHECK(says("its directory /opt/local-path-provisioner, mounted at /mnt/disk"));
    CHECK(says("on the node, where /dev/sdb is mounted as a whole: umount it"));
  }
}

// LPP_QUOTA_OFF: "folder=words of the message;…"
TEST_CASE("where limits are off the error names the way to switch them on" *
          NeedsSetting("LPP_QUOTA_OFF")) {
  const std::string off = *setting("LPP_QUOTA_OFF");
  Kernel kernel;
  for (const auto entry : split(off, ';')) {
    const std::string folder(entry.substr(0, entry.find('=')));
    const std::string words(entry.substr(entry.find('=') + 1));
    CAPTURE(folder);
    const auto volumes = Volumes::open(kernel, folder, {.require_mount = true});
    REQUIRE_MESSAGE(volumes.ok(), volumes.error().message);
    const auto made = volumes->make({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = kMiB}});
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().is(ErrorCode::kUnfit));
    CHECK_MESSAGE(made.error().message.find(words) != std::string::npos, made.error().message);
    CHECK(made.error().message.find(folder) != std::string::npos);
    REQUIRE(volumes->make({.id = "pvc-1", .path = "pvc-1"}).ok());
    CHECK(volumes->resize({.id = "pvc-1", .limits = {.bytes = kMiB}, .limited = true})
              .error()
              .is(ErrorCode::kInvalid));
    CHECK(volumes->usage()->volumes.size() == 1);
    CHECK(*volumes->remove({.id = "pvc-1"}) == Removed::kRemoved);
  }
}

// LPP_QUOTA_TAGGED: as LPP_QUOTA_OFF, of file systems that had limits when a volume was made there
// by the program, in "data", of 64 Mi.
TEST_CASE(
    "where limits are off by now, volumes that had some are seen and go, and none is promised" *
    NeedsSetting("LPP_QUOTA_TAGGED")) {
  const std::string tagged = *setting("LPP_QUOTA_TAGGED");
  Kernel kernel;
  for (const auto entry : split(tagged, ';')) {
    const std::string folder(entry.substr(0, entry.find('=')));
    const std::string words(entry.substr(entry.find('=') + 1));
    CAPTURE(folder);
    const auto refused = [&](const auto& result) {
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().is(ErrorCode::kUnfit));
      CHECK_MESSAGE(result.error().message.find(words) != std::string::npos,
                    result.error().message);
    };
    const auto opened = Volumes::open(kernel, folder, {.require_mount = true});
    REQUIRE_MESSAGE(opened.ok(), opened.error().message);
    const Volumes& volumes = *opened;
    const auto listed = volumes.list();
    REQUIRE(listed->volumes.size() == 1);
    const Volume before = listed->volumes[0];
    CHECK(before.path == "data");
    CHECK(before.limits.bytes == 64 * kMiB);
    REQUIRE(ProjectQuota::is_own(before.project));
    const UniqueFd data(kernel.open((folder + "/data").c_str(), O_RDONLY | O_DIRECTORY));
    CHECK(*ProjectQuota::project_of(kernel, data.get()) == before.project);

    // Nothing holds it, so nobody is told that something does.
    CHECK(fill(folder + "/data/more", 80 * kMiB).error == 0);
    refused(volumes.make({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = kMiB}}));
    refused(volumes.make({.id = before.id, .path = "data", .limits = before.limits}));
    refused(volumes.make({.id = before.id, .path = "data", .limits = {.bytes = 128 * kMiB}}));
    refused(volumes.resize({.id = before.id, .limits = {.bytes = 128 * kMiB}, .limited = true}));
    refused(volumes.adopt({.id = before.id, .path = "data", .limits = {.bytes = 128 * kMiB}}));
    CHECK(volumes.make({.id = before.id, .path = "data"})->project == before.project);
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    REQUIRE(usage->volumes.size() == 1);
    CHECK(usage->volumes[0].volume.limits == before.limits);
    CHECK_FALSE(usage->volumes[0].use.has_value());
    CHECK(usage->promised_bytes == 64 * kMiB);
    CHECK(volumes.recover({})->empty());

    CHECK(*volumes.remove({.id = before.id}) == Removed::kRemoved);
    CHECK(::access((folder + "/data").c_str(), F_OK) != 0);
    CHECK(volumes.list()->volumes.empty());
  }
}
