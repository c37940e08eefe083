// SPDX-License-Identifier: Apache-2.0
#include "node/volumes.h"

#include <doctest/doctest.h>
#include <sys/mount.h>

#include <set>
#include <tuple>

#include "node/open_base.h"
#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace {

namespace fs = std::filesystem;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE("a volume is made once with its mode, listed, and removed with all it holds") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(make_request("pvc-1", "web/data/pvc-1"));
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  CHECK(made->origin == Origin::kMade);
  CHECK((made->project != 0) == BaseFolder::has_limits());
  CHECK(mode_of(base.at("web/data/pvc-1")) == 02770);
  CHECK(mode_of(base.at("web")) == 0755);
  CHECK(mode_of(base.at(kRecordFolder)) == 0700);
  CHECK(mode_of(base.path()) == 0700);

  base.write("web/data/pvc-1/kept");
  const auto again = volumes.make(make_request("pvc-1", "web/data/pvc-1"));
  REQUIRE(again.ok());
  CHECK(again->origin == Origin::kMade);
  CHECK(base.has("web/data/pvc-1/kept"));
  // Where ids come from paths the record may be of an earlier claim.
  auto of_another = make_request("pvc-1", "web/data/pvc-1");
  for (const char* uid : {"", "another-uid"}) {
    of_another.uid = uid;
    CHECK(volumes.make(of_another)->origin == Origin::kFound);
  }
  CHECK(volumes.make(make_request("pvc-1", "other")).error().is(ErrorCode::kAlreadyExists));

  const auto listing = volumes.list();
  REQUIRE(listing.ok());
  REQUIRE(listing->volumes.size() == 1);
  CHECK(listing->problems.empty());
  CHECK(listing->volumes[0].id == "pvc-1");
  CHECK(listing->volumes[0].claim == "web/data");
  CHECK(listing->volumes[0].state == State::kPresent);
  CHECK(base.content() == std::set<std::string>{"web", "web/data", "web/data/pvc-1",
                                                "web/data/pvc-1/kept",
                                                BaseFolder::record("volume.pvc-1.json")});

  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(base.content().empty());
  CHECK(*volumes.remove({.id = "pvc-1", .path = "web/data/pvc-1"}) == Removed::kAbsent);
  CHECK(volumes.list()->volumes.empty());
}

TEST_CASE("folders of a pattern that others use stay when a volume in them goes") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "web/a/pvc-1")).ok());
  REQUIRE(volumes.make(make_request("pvc-2", "web/b/pvc-2")).ok());
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  CHECK_FALSE(base.has("web/a"));
  CHECK(base.has("web/b/pvc-2"));
}

TEST_CASE("a directory that was there before is found, and no take-back removes it") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  base.write("data/mine");
  auto request = make_request("pvc-1", "data");
  request.limits = {};
  const auto found = volumes.make(request);
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  CHECK(found->origin == Origin::kFound);
  CHECK(mode_of(base.at("data")) == 02770);
  CHECK(volumes.make(request)->origin == Origin::kFound);

  CHECK(*volumes.remove({.id = "pvc-1", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.content() == std::set<std::string>{"data", "data/mine"});
  CHECK(volumes.list()->volumes.empty());

  // A released volume takes it along.
  REQUIRE(volumes.make(request).ok());
  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(base.content().empty());
}

TEST_CASE("what may have been used is removed only if it is empty, whoever made it") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto if_empty = [&](const std::string& id, const std::string& path) {
    return *volumes.remove({.id = id, .path = path, .removal = Removal::kIfEmpty});
  };
  REQUIRE(volumes.make({.id = "pvc-1", .path = "web/pvc-1"}).ok());
  base.write("web/pvc-1/file");
  CHECK(if_empty("pvc-1", "web/pvc-1") == Removed::kKept);
  CHECK(base.has("web/pvc-1/file"));
  CHECK(volumes.list()->volumes.size() == 1);
  std::filesystem::remove(base.at("web/pvc-1/file"));
  // Another volume's directory is not empty space.
  CHECK(if_empty("pvc-2", "web/pvc-1") == Removed::kKept);
  CHECK(base.has("web/pvc-1"));
  CHECK(if_empty("pvc-1", "web/pvc-1") == Removed::kRemoved);
  CHECK(base.content().empty());
  CHECK(if_empty("pvc-1", "web/pvc-1") == Removed::kAbsent);

  std::filesystem::create_directories(base.at("web/found"));
  CHECK(if_empty("found", "web/found") == Removed::kRemoved);
  std::filesystem::create_directory(base.at("elsewhere"));
  std::filesystem::create_symlink(base.at("elsewhere"), base.at("link"));
  CHECK(if_empty("link", "link") == Removed::kKept);
  base.write("file");
  CHECK(if_empty("file", "file") == Removed::kKept);
  CHECK(base.has("elsewhere"));
}

TEST_CASE("a volume without a record is removed by its path") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  base.write("web/data/file");
  CHECK(*volumes.remove({.id = "x"}) == Removed::kAbsent);
  CHECK(*volumes.remove({.id = "x", .path = "web/data", .removal = Removal::kTakeBack}) ==
        Removed::kKept);
  CHECK(base.has("web/data/file"));
  CHECK(*volumes.remove({.id = "x", .path = "web/data"}) == Removed::kRemoved);
  CHECK(base.content().empty());
}

TEST_CASE("a removal that comes late leaves the volume that is in its place by now") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  std::string path = "web/data";
  std::string again = path;
  SUBCASE("it was done before") {
    REQUIRE(volumes.make(make_request("old", path)).ok());
    REQUIRE(*volumes.remove({.id = "old"}) == Removed::kRemoved);
  }
  SUBCASE("its directory went without it") {
    REQUIRE(volumes.make(make_request("old", path)).ok());
    std::filesystem::remove_all(base.at(path));
  }
  SUBCASE("the other volume is inside") { again = "web"; }
  REQUIRE(volumes.make(make_request("next", path)).ok());
  base.write(path + "/kept");
  const auto late = volumes.remove({.id = "old", .path = again});
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().is(ErrorCode::kInvalid));
  CHECK(late.error().message.find("volume next") != std::string::npos);
  CHECK(base.has(path + "/kept"));
  CHECK(*volumes.remove({.id = "next"}) == Removed::kRemoved);
  CHECK_FALSE(base.has(path));
}

TEST_CASE("a directory that is made again at once is told from the one that has gone") {
  const BaseFolder base;
  Kernel kernel;
  std::set<std::tuple<std::uint64_t, std::int64_t, std::uint32_t>> seen;
  constexpr int kTimes = 200;
  for (int i = 0; i < kTimes; ++i) {
    std::filesystem::create_directory(base.at("data"));
    const UniqueFd fd(kernel.open(base.at("data").c_str(), O_RDONLY | O_DIRECTORY));
    const auto identity = identity_of(kernel, fd.get());
    REQUIRE_MESSAGE(identity.ok(), identity.error().message);
    seen.emplace(identity->inode, identity->born_ns, identity->generation);
    std::filesystem::remove(base.at("data"));
  }
  CHECK(seen.size() == kTimes);
}

TEST_CASE("what an unreadable record may tell of is not removed by its path") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "data")).ok());
  REQUIRE(volumes.make(make_request("pvc-2", "other")).ok());
  base.write("data/kept");
  base.write(BaseFolder::record("volume.pvc-1.json"), "{");
  const auto removed = volumes.remove({.id = "late", .path = "data"});
  REQUIRE_FALSE(removed.ok());
  CHECK(removed.error().is(ErrorCode::kUnavailable));
  CHECK(removed.error().message.find("pvc-1") != std::string::npos);
  CHECK(base.has("data/kept"));
  // One that is on record is nobody else's.
  CHECK(*volumes.remove({.id = "pvc-2"}) == Removed::kRemoved);
}

TEST_CASE("a removal writes nothing where nothing is") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  CHECK(*volumes.remove({.id = "x", .path = "web/data"}) == Removed::kAbsent);
  CHECK_FALSE(base.has(kRecordFolder));
  CHECK(volumes.list()->volumes.empty());
  CHECK(volumes.usage()->space.size_bytes > 0);
  CHECK_FALSE(base.has(kRecordFolder));
}

TEST_CASE("neither the way to a volume nor the volume itself may be a symbolic link or a file") {
  const BaseFolder base;
  const BaseFolder outside;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  outside.write("kept");
  fs::create_directory_symlink(outside.path(), base.at("link"));
  // Another volume's, which it never leaves the base path for.
  base.write("other/pvc/kept");
  fs::create_directory_symlink("other", base.at("near"));
  base.write("file");
  for (const char* path :
       {"link/pvc", "link", "near/pvc", "near/new", "near", "file", "file/pvc"}) {
    CAPTURE(path);
    const auto made = volumes.make(make_request("pvc-1", path));
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().is(ErrorCode::kInvalid));
    const auto removed = volumes.remove({.id = "pvc-1", .path = path});
    REQUIRE_FALSE(removed.ok());
    CHECK(removed.error().is(ErrorCode::kInvalid));
  }
  CHECK(outside.content() == std::set<std::string>{"kept"});
  CHECK(base.content() ==
        std::set<std::string>{"file", "link", "near", "other", "other/pvc", "other/pvc/kept"});
}

TEST_CASE("what is asked for is checked before anything is done") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto refused = [&](const std::function<void(MakeRequest&)>& change) {
    auto request = make_request("pvc-1", "data");
    change(request);
    const auto made = volumes.make(request);
    return !made.ok() && made.error().is(ErrorCode::kInvalid);
  };
  CHECK(refused([](auto& request) { request.id = "../x"; }));
  CHECK(refused([](auto& request) { request.path = "../x"; }));
  CHECK(refused([](auto& request) { request.path = "/x"; }));
  CHECK(refused([](auto& request) { request.path = std::string(kRecordFolder) + "/x"; }));
  CHECK(refused([](auto& request) { request.access.mode = 010000; }));
  CHECK(refused([](auto& request) { request.access.user = UINT32_MAX; }));
  CHECK(refused([](auto& request) { request.access.group = UINT32_MAX; }));
  CHECK(base.content().empty());
}

TEST_CASE("limits are refused where the file system has none, and nothing stays" *
          NeedsNoLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("pvc-1", "data");
  request.limits.bytes = 1 << 20;
  const auto made = volumes.make(request);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().is(ErrorCode::kUnfit));
  CHECK(made.error().message.find("no limits on ") != std::string::npos);
  CHECK(made.error().message.find("mounted at ") != std::string::npos);
  CHECK(base.content().empty());
}

TEST_CASE("a kernel that cannot look for a path safely is told by the version that can") {
  class OldKernel final : public Kernel {
   public:
    explicit OldKernel(int error) : error_(error) {}

   protected:
    int before(const char* call) override {
      return std::string_view(call) == "openat2" ? error_ : 0;
    }

   private:
    const int error_;
  };
  const BaseFolder base;
  for (const int error : {ENOSYS, EPERM}) {
    OldKernel kernel(error);
    const auto volumes = Volumes::open(kernel, base.path(), {});
    REQUIRE_FALSE(volumes.ok());
    CHECK(volumes.error().is(ErrorCode::kUnfit));
    CHECK_MESSAGE(volumes.error().message.find("Linux 5.8 or newer") != std::string::npos,
                  volumes.error().message);
  }
  CHECK(base.content().empty());
}

TEST_CASE("a base folder that is a folder of another disk is refused where a mount is required") {
  const BaseFolder base;
  Kernel kernel;
  const auto opened = Volumes::open(kernel, base.path(), {.require_mount = true});
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().is(ErrorCode::kUnfit));
  CHECK(opened.error().message.find("Is its disk mounted?") != std::string::npos);
  CHECK(Volumes::open(kernel, "/proc", {.require_mount = true}).ok());
  CHECK(Volumes::open(kernel, base.at("absent"), {}).error().is(ErrorCode::kNotFound));
}

TEST_CASE("a base folder that holds something stays open, and one of the records is closed") {
  const BaseFolder base;
  Kernel kernel;
  base.write("other");
  fs::permissions(base.path(), fs::perms(0755));
  const auto volumes = base.volumes(kernel);
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  CHECK(*is_first_volume(kernel, folder.get()));
  REQUIRE(volumes.make(make_request("pvc-1", "a")).ok());
  CHECK(mode_of(base.path()) == 0755);
  CHECK_FALSE(*is_first_volume(kernel, folder.get()));
  const auto why = why_base_is_open(kernel, folder.get(), "/data");
  REQUIRE(why.ok());
  CHECK(why->starts_with("/data stays open to other users of the node (mode 0755)"));
  CHECK(why->ends_with("chmod 0700 /data"));
  fs::permissions(base.path(), fs::perms(0700));
  CHECK(why_base_is_open(kernel, folder.get(), "/data")->empty());
  fs::permissions(base.path(), fs::perms(0755));
  fs::permissions(base.at(kRecordFolder), fs::perms(0777));
  REQUIRE(volumes.make(make_request("pvc-2", "b")).ok());
  CHECK(mode_of(base.at(kRecordFolder)) == 0700);
}

TEST_CASE("a folder of the records that is somebody else's is not trusted" * NeedsRoot()) {
  const BaseFolder base;
  Kernel kernel;
  fs::create_directory(base.at(kRecordFolder));
  REQUIRE(::chown(base.at(kRecordFolder).c_str(), 1000, 1000) == 0);
  const auto volumes = base.volumes(kernel);
  CHECK(volumes.make(make_request("pvc-1", "a")).error().is(ErrorCode::kForbidden));
  CHECK_FALSE(base.has("a"));
}

TEST_CASE("owner and group are those asked for, with the whole mode" * NeedsRoot()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("pvc-1", "a");
  request.access = {.user = 1000, .group = 2000, .mode = 06750};
  REQUIRE(volumes.make(request).ok());
  struct stat status {};
  REQUIRE(::stat(base.at("a").c_str(), &status) == 0);
  CHECK(status.st_uid == 1000);
  CHECK(status.st_gid == 2000);
  CHECK((status.st_mode & 07777U) == 06750);
}

TEST_CASE("a volume is worked at by one at a time") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "a")).ok());
  base.write("a/file");
  std::optional<ErrorCode> met;
  std::optional<bool> another;
  // Asked from within the removal.
  RemoveRequest request{.id = "pvc-1"};
  class Watching final : public Kernel {
   public:
    std::function<void()> on_unlink{};

   protected:
    void after(const char* call) override {
      if (std::string_view(call) == "unlinkat" && on_unlink) std::exchange(on_unlink, {})();
    }
  } watching;
  watching.on_unlink = [&] {
    met = volumes.make(make_request("pvc-1", "a")).error().code;
    another = volumes.make(make_request("pvc-2", "b")).ok();
  };
  CHECK(*base.volumes(watching).remove(request) == Removed::kRemoved);
  CHECK(met == ErrorCode::kConflict);
  CHECK(another == true);
}

TEST_CASE("records that cannot be read are told, and the others are listed") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "a")).ok());
  base.write(BaseFolder::record("volume.bad.json"), "{");
  base.write(BaseFolder::record("volume.long.json"), std::string(100000, ' '));
  fs::copy_file(base.at(BaseFolder::record("volume.pvc-1.json")),
                base.at(BaseFolder::record("volume.copy.json")));
  const auto listing = volumes.list();
  REQUIRE(listing.ok());
  CHECK(listing->volumes.size() == 1);
  REQUIRE(listing->problems.size() == 3);
  CHECK(listing->problems[0].starts_with("volume.bad.json: "));
  CHECK_FALSE(volumes.remove({.id = "bad"}).ok());
}

TEST_CASE("a volume with a mount in it is not removed") {
  const BaseFolder base;
  const int code = in_process([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return 77;  // no right to
    }
    Kernel kernel;
    const auto volumes = base.volumes(kernel);
    if (!volumes.make(make_request("pvc-1", "a")).ok()) return 1;
    base.write("a/deep/down/file");
    if (::mount("none", base.at("a/deep/down").c_str(), "tmpfs", 0, nullptr) != 0) {
      return 77;  // no right to
    }
    base.write("a/deep/down/of the mount");
    const auto removed = volumes.remove({.id = "pvc-1"});
    if (removed.ok() || !removed.error().is(ErrorCode::kInvalid)) return 2;
    if (removed.error().message.find("something is mounted at ") == std::string::npos) return 3;
    if (!base.has("a/deep/down/of the mount")) return 4;
    // One that is met on the way is not entered.
    RecordFolder records = *RecordFolder::find_or_make(
        kernel, UniqueFd(kernel.open(base.path().c_str(), O_RDONLY)).get());
    const UniqueFd folder(kernel.open(base.at("a").c_str(), O_RDONLY));
    const ProgressSink nothing;
    if (TreeRemoval(kernel, records.fd(), nothing, {}).empty(folder.get()).ok()) return 5;
    if (!base.has("a/deep/down/of the mount")) return 6;
    ::umount(base.at("a/deep/down").c_str());
    const auto again = volumes.remove({.id = "pvc-1"});
    return again.ok() && *again == Removed::kRemoved ? 0 : 7;
  });
  CHECK((code == 0 || code == 77));
}

TEST_CASE("a directory that is kept for another claim is on record for the claim of now") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("data", "data");
  request.published = false;
  REQUIRE(volumes.make(request)->origin == Origin::kMade);
  base.write("data/file");
  const auto recorded = [&] { return volumes.list()->volumes.at(0); };
  auto later = request;
  later.claim = "web/later";
  later.uid = "u-2";
  SUBCASE("of another UID") {
    later.claim = request.claim;
    REQUIRE(volumes.make(later)->origin == Origin::kFound);
    CHECK(recorded().uid == "u-2");
  }
  SUBCASE("of another name") {
    REQUIRE(volumes.make(later)->origin == Origin::kFound);
    CHECK(recorded().claim == "web/later");
    CHECK(recorded().uid == "u-2");
  }
  SUBCASE("with another size") {
    later.size = request.limits.bytes + kMiB;
    REQUIRE(volumes.make(later)->origin == Origin::kFound);
    CHECK(recorded().uid == "u-2");
    CHECK(recorded().size == later.size);
  }
  SUBCASE("of which only the name is known") {
    later.uid.clear();
    REQUIRE(volumes.make(later)->origin == Origin::kFound);
    CHECK(recorded().claim == "web/later");
    CHECK(recorded().uid.empty());
  }
  CHECK_FALSE(recorded().published);
  // Its own make, done again, must not take the data of the claim before for its own.
  CHECK(volumes.make(later)->origin == Origin::kFound);
  CHECK(recorded().origin == Origin::kFound);
  CHECK(*volumes.remove({.id = "data", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.has("data/file"));
}

TEST_CASE("who does not say for which claim changes no record") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("data", "data");
  REQUIRE(volumes.make(request).ok());
  for (const char* const claim : {"", "web/data"}) {
    request.claim = claim;
    request.uid.clear();
    CHECK(volumes.make(request)->origin == Origin::kFound);
    CHECK(volumes.list()->volumes.at(0).claim == "web/data");
    CHECK(volumes.list()->volumes.at(0).uid == "u-1");
    CHECK(volumes.list()->volumes.at(0).origin == Origin::kMade);
  }
}
