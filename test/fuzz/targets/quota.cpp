// SPDX-License-Identifier: Apache-2.0
// Answers of quotactl and of btrfs, each from the next bytes of the input: no loop goes on for
// ever, no number wraps around, nothing is read past an answer's end, and a project is given only
// if it is free and one of ours.

#include "node/quota.h"

#include <linux/btrfs_tree.h>
#include <linux/dqblk_xfs.h>

#include <algorithm>
#include <cstring>

#include "node/subvolume.h"
#include "property.h"

namespace {

class AnsweringKernel final : public lpp::node::Kernel {
 public:
  explicit AnsweringKernel(std::string_view answers) : answers_(answers) {}

  int quota(int /*fd*/, const char* /*device*/, unsigned /*command*/, std::uint32_t /*project*/,
            void* argument) override {
    ++calls_;
    if (answers_.empty()) {
      errno = ENOENT;
      return -1;
    }
    const auto kind = static_cast<unsigned char>(answers_.front());
    answers_.remove_prefix(1);
    if (kind < 16) {
      errno = kind == 0 ? ENOENT : kind;
      return -1;
    }
    const std::size_t size = std::min(answers_.size(), sizeof(fs_disk_quota));
    std::memcpy(argument, answers_.data(), size);
    answers_.remove_prefix(size);
    return 0;
  }
  int search_tree(int /*fd*/, btrfs_ioctl_search_args& arguments) override {
    ++calls_;
    if (answers_.empty()) {
      arguments.key.nr_items = 0;
      return 0;
    }
    arguments.key.nr_items = static_cast<unsigned char>(answers_.front());
    answers_.remove_prefix(1);
    const std::size_t size = std::min(answers_.size(), sizeof arguments.buf);
    std::memcpy(arguments.buf, answers_.data(), size);
    answers_.remove_prefix(size);
    return 0;
  }
  std::size_t calls() const { return calls_; }

 private:
  std::string_view answers_;
  std::size_t calls_ = 0;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lpp::fuzz::require;
  using lpp::node::ProjectQuota;
  const auto answers = lpp::fuzz::text_of(data, size);
  {
    AnsweringKernel kernel(answers);
    const auto uses = ProjectQuota::assumed(kernel, -1).uses();
    require(kernel.calls() <= size + 1, "each answer is asked for once");
    if (uses.ok()) {
      const bool rising =
          std::is_sorted(uses->begin(), uses->end(),
                         [](const auto& a, const auto& b) { return a.project <= b.project; });
      require(uses->size() < 2 || rising, "no project comes twice");
    }
  }
  {
    AnsweringKernel kernel(answers);
    const auto project = ProjectQuota::assumed(kernel, -1).free_project("pvc-1");
    require(!project.ok() || !*project || ProjectQuota::is_own(**project),
            "a project is one of ours");
    require(kernel.calls() <= 64, "the search ends");
  }
  {
    AnsweringKernel kernel(answers);
    const lpp::node::SubvolumeQuota subvolumes(kernel, -1);
    (void)subvolumes.state();
    const auto uses = subvolumes.uses();
    require(kernel.calls() <= size + 4, "each answer is asked for once");
    for (const auto& use : *uses) {
      require(use.project >= BTRFS_FIRST_FREE_OBJECTID, "only subvolumes are told of");
      require(!use.inodes.has_value(), "inodes are not counted");
    }
  }
  AnsweringKernel kernel(answers);
  const auto quota = ProjectQuota::assumed(kernel, -1);
  if (const auto use = quota.use(7); use.ok() && *use) {
    (void)lpp::node::check_holds("pvc-1", {.bytes = 1, .inodes = 1}, **use);
  }
  (void)quota.limit(7, {.bytes = ~std::uint64_t{0}, .inodes = ~std::uint64_t{0}});
  return 0;
}
