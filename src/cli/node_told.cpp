// SPDX-License-Identifier: Apache-2.0
#include "cli/node_told.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "cli/text.h"

namespace lpp::cli {

Told::Told(const node::Volumes& volumes, const Context& context)
    : volumes_(volumes), is_heard_(context.getenv("VOL_DIR").has_value()) {
  if (!is_heard_) return;
  // Worth no failure: the next helper pod tells it, too.
  const auto usage = volumes.counted();
  const auto space = usage.ok() ? Result<node::Space>(usage->space) : volumes.space();
  if (!space.ok()) return;
  lines_ = fmt::format("space: size={} free={} inodes={} freeInodes={}", space->size_bytes,
                       space->available_bytes, space->inodes, space->free_inodes);
  if (usage.ok() && usage->problems.empty()) {
    const auto promises = node::promises_of(*usage);
    lines_ += fmt::format(" unused={} limitedUsed={} unlimited={}", promises.unused, promises.used,
                          promises.unlimited);
  }
  lines_ += '\n';
}

void Told::limits(const node::Limits& limits) {
  lines_ += limits.bytes == 0
                ? "limits: none\n"
                : fmt::format("limits: bytes={} inodes={}\n", limits.bytes, limits.inodes);
}

void Told::used(const node::Volume& volume) {
  const auto use = volumes_.use_of(volume);
  if (!use.ok() || !*use) return;
  lines_ += fmt::format("used: bytes={}", (*use)->bytes);
  if ((*use)->inodes) lines_ += fmt::format(" inodes={}", *(*use)->inodes);
  lines_ += '\n';
}

void Told::checked(const NodeRequest& request) {
  const node::Room& room = request.room;
  if (!room.any() && !request.require_mount) return;
  lines_ +=
      fmt::format("checked:{}{}{}\n", room.reserve ? " reserve" : "",
                  room.overcommit ? "" : " overcommit", request.require_mount ? " mount" : "");
}

void Told::failed(const Error& error) { lines_ += one_line(error.message) + "\n"; }

void Told::directory(std::string_view what) { lines_ += fmt::format("directory: {}\n", what); }

void Told::send() const {
  if (!is_heard_) return;
  const UniqueFd file(::open("/dev/termination-log", O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid()) return;
  [[maybe_unused]] const auto written = ::write(file.get(), lines_.data(), lines_.size());
}

}  // namespace lpp::cli
