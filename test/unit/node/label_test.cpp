// SPDX-License-Identifier: Apache-2.0
#include "node/label.h"

#include <doctest/doctest.h>

#include <map>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace {

/// A kernel with SELinux, which labels what is made as the helper pod's process does.
class LabellingKernel final : public Kernel {
 public:
  int label(int fd, std::string& to) override {
    if (get_error_ != 0) {
      errno = get_error_;
      return -1;
    }
    const auto it = labels_.find(inode_of(fd));
    to = it == labels_.end() ? "system_u:object_r:usr_t:s0:c5,c6" : it->second;
    to += '\0';
    return 0;
  }
  int set_label(int fd, const std::string& label) override {
    if (set_error_ != 0) {
      errno = set_error_;
      return -1;
    }
    labels_[inode_of(fd)] = label;
    return 0;
  }
  static std::uint64_t inode_of(int fd) {
    Kernel kernel;
    return identity_of(kernel, fd)->inode;
  }

  std::map<std::uint64_t, std::string> labels_{};
  int get_error_ = 0;
  int set_error_ = 0;
};

}  // namespace

TEST_CASE("where SELinux is on a new directory may be written to by containers of every pod") {
  const BaseFolder base;
  LabellingKernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(make_request("pvc-1", "web/pvc-1"));
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  CHECK(kernel.labels_ == std::map<std::uint64_t, std::string>{
                              {made->directory.inode, "system_u:object_r:container_file_t:s0"}});
}

TEST_CASE(
    "a directory that was there keeps its label: the kubelet may have given it a pod's level") {
  const BaseFolder base;
  base.make_directory("web/pvc-1");
  LabellingKernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "web/pvc-1")).ok());
  REQUIRE(volumes.make(make_request("pvc-1", "web/pvc-1")).ok());
  CHECK(kernel.labels_.empty());
}

TEST_CASE("without SELinux, its type or the right a directory is made all the same") {
  for (const int error : {ENODATA, EOPNOTSUPP, EPERM}) {
    const BaseFolder base;
    LabellingKernel kernel;
    kernel.get_error_ = error;
    CHECK(base.volumes(kernel).make(make_request("pvc-1", "a")).ok());
    CHECK(kernel.labels_.empty());
  }
  for (const int error : {EINVAL, EPERM, EACCES}) {
    const BaseFolder base;
    LabellingKernel kernel;
    kernel.set_error_ = error;
    CHECK(base.volumes(kernel).make(make_request("pvc-1", "a")).ok());
  }
  for (const int error : {EIO, ENOSPC}) {
    const BaseFolder base;
    LabellingKernel kernel;
    kernel.set_error_ = error;
    const auto made = base.volumes(kernel).make(make_request("pvc-1", "a"));
    CHECK_FALSE(made.ok());
    CHECK(base.content().empty());
  }
}

TEST_CASE("the label for containers has no categories, and no level where the policy has none") {
  CHECK(container_label("system_u:object_r:usr_t:s0") == "system_u:object_r:container_file_t:s0");
  CHECK(container_label("u:r:container_file_t:s0:c1,c2") ==
        "system_u:object_r:container_file_t:s0");
  CHECK(container_label("u:r:container_file_t:s0-s0:c0.c1023") ==
        "system_u:object_r:container_file_t:s0");
  CHECK(container_label("u:r:usr_t") == "system_u:object_r:container_file_t");
  CHECK(container_label("u:r:container_file_t:s0").empty());
  CHECK(container_label(std::string("u:r:container_file_t:s0\0", 24)).empty());
  CHECK(container_label("u:r:container_file_t").empty());
  CHECK(container_label("").empty());
  CHECK(container_label("unlabeled").empty());
}
