// SPDX-License-Identifier: Apache-2.0
#include "provisioner/path_safety.h"

#include <array>

#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"

namespace lpp::provisioner {

namespace {

constexpr std::size_t kNameMax = 255;
constexpr std::size_t kPathMax = 4095;

/// No volume is ever below these; nor may one of them be inside a volume.
constexpr std::array<std::string_view, 12> kSystemPaths{"/bin",
                                                        "/boot",
                                                        "/dev",
                                                        "/etc",
                                                        "/lib",
                                                        "/lib64",
                                                        "/proc",
                                                        "/sbin",
                                                        "/sys",
                                                        "/usr",
                                                        "/var/lib/kubelet",
                                                        "/var/lib/etcd"};

/// For a message, which has limits of its own.
std::string shown(std::string_view path) {
  constexpr std::size_t kShown = 500;
  std::string text = log::quoted(truncate_utf8(path, kShown));
  if (!text.starts_with('"')) text = '"' + text + '"';
  return path.size() > kShown ? text + "..." : text;
}

}  // namespace

bool has_control_character(std::string_view text) {
  // In UTF-8, U+0080 to U+009F are 0xC2 and a byte of that range.
  bool after_c2 = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f || (after_c2 && byte >= 0x80 && byte < 0xa0)) return true;
    after_c2 = byte == 0xc2;
  }
  return false;
}

Result<void> check_volume_path(std::string_view path) {
  const auto refuse = [&](std::string_view why) {
    return invalid("path " + shown(path) + " " + std::string(why));
  };
  if (path.empty() || path.front() != '/') return refuse("is not absolute");
  if (path.size() > kPathMax) return refuse("is longer than 4095 bytes");
  const auto components = split(path.substr(1), '/');
  for (const std::string_view component : components) {
    if (component.empty()) return refuse("has an empty component");
    if (component == "." || component == "..") return refuse("has a relative component");
    if (component.size() > kNameMax) {
      return refuse("has a component longer than 255 bytes, which no file system accepts");
    }
    if (has_control_character(component)) return refuse("has a control character");
  }
  if (components.size() < 2) return refuse("lies directly under the root directory");
  return {};
}

Result<void> check_not_a_system_path(std::string_view path) {
  for (const std::string_view system : kSystemPaths) {
    if (overlaps(path, system)) {
      return invalid("path " + shown(path) + " overlaps the system directory " +
                     std::string(system));
    }
  }
  return {};
}

}  // namespace lpp::provisioner
