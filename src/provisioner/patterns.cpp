// SPDX-License-Identifier: Apache-2.0
#include "provisioner/patterns.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/paths.h"
#include "base/strings.h"
#include "base/whole_number.h"
#include "config/path_template.h"
#include "provisioner/names.h"
#include "provisioner/path_safety.h"

namespace lpp::provisioner {

namespace {

using k8s::find;

constexpr std::size_t kMaxOwnerName = 32;

/// Pattern of that name: the class's parameter, else its annotation.
const std::string* pattern_of(const k8s::StorageClass& storage_class, std::string_view name) {
  const std::string* pattern = find(storage_class.parameters, name);
  return pattern != nullptr ? pattern : find(storage_class.meta.annotations, name);
}

Result<std::string> render(const std::string& pattern, std::string_view name,
                           const k8s::PersistentVolumeClaim& claim, std::string_view volume_name) {
  LPP_ASSIGN_OR_RETURN(const auto parsed, config::PathTemplate::parse(pattern, name), "parse");
  return parsed.render(volume_name, claim.meta);
}

/// As Go's strconv.ParseBool; anything else is false.
bool is_true(const std::string* text) {
  constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "TRUE", "true", "True"};
  return text != nullptr && std::find(kTrue.begin(), kTrue.end(), *text) != kTrue.end();
}

/// Without the characters around it that Unicode calls white space, as Go's strings.TrimSpace.
std::string_view trim_blanks(std::string_view text) {
  constexpr std::array<std::string_view, 25> kBlanks{
      "\t",     "\n",     "\v",     "\f",     "\r",     " ",      "\u0085", "\u00a0", "\u1680",
      "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
      "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view blank : kBlanks) {
      if (text.starts_with(blank)) {
        text.remove_prefix(blank.size());
        found = true;
      }
      if (text.ends_with(blank)) {
        text.remove_suffix(blank.size());
        found = true;
      }
    }
  }
  return text;
}

bool is_number(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

/// A numeric ID or a name as useradd accepts it. The greatest number that an ID has room for is
/// none: chown takes it for "leave as it is".
bool is_owner(std::string_view text) {
  if (is_number(text, "0123456789")) {
    const auto id = whole_number<std::uint32_t>(text);
    return id && *id != std::numeric_limits<std::uint32_t>::max();
  }
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kRest =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !text.empty() && text.size() <= kMaxOwnerName &&
         kFirst.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(kRest) == std::string_view::npos;
}

/// Octal, at most 7777.
bool is_mode(std::string_view text) {
  if (!is_number(text, "01234567")) return false;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  return text.size() <= 4;
}

/// As Go's filepath.Join(base, text) below the base, without it; nothing when the way leads to the
/// base itself or anywhere above it.
std::optional<std::string> cleaned_below(std::string_view text) {
  std::vector<std::string_view> kept;
  for (const std::string_view part : split(text, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      kept.push_back(part);
    } else if (kept.empty()) {
      return std::nullopt;
    } else {
      kept.pop_back();
    }
  }
  std::string folder;
  for (const std::string_view part : kept) {
    if (!folder.empty()) folder += '/';
    folder += part;
  }
  if (folder.empty()) return std::nullopt;
  return folder;
}

std::variant<std::string, Refusal> folder_from(std::string rendered, bool unsafe_allowed,
                                               const k8s::PersistentVolumeClaim& claim) {
  const auto refuse = [&](std::string_view why) {
    return Refusal{.message = "pathPattern gives \"" + rendered + "\", " + std::string(why)};
  };
  std::string folder = rendered;
  if (folder.ends_with('/')) folder.pop_back();
  if (unsafe_allowed) {
    auto cleaned = cleaned_below(folder);
    if (!cleaned) return refuse("which leads to or above the base path");
    folder = *std::move(cleaned);
  }
  for (const std::string_view component : split(folder, '/')) {
    if (component.empty()) return refuse("which has an empty component");
    if (component == "." || component == "..") {
      return refuse("which has the component \"" + std::string(component) + "\"");
    }
    if (has_control_character(component)) return refuse("which has a control character");
  }
  const std::string own = claim.meta.ns + "/" + claim.meta.name;
  if (!unsafe_allowed && !is_at_or_below(folder, own)) {
    return refuse("which must begin with \"" + own +
                  "/\": use {{ .PVC.Namespace }}/{{ .PVC.Name }}/…, or set "
                  "allowUnsafePathPattern: \"true\" on the StorageClass");
  }
  return folder;
}

}  // namespace

std::variant<Rendered, Refusal> render_patterns(const k8s::PersistentVolumeClaim& claim,
                                                const k8s::StorageClass& storage_class,
                                                std::string_view volume_name) {
  Rendered result;
  if (const std::string* pattern = find(storage_class.parameters, kPathPattern);
      pattern != nullptr && !pattern->empty()) {
    auto rendered = render(*pattern, kPathPattern, claim, volume_name);
    if (!rendered.ok()) return Refusal{.message = rendered.error().message};
    auto folder = folder_from(*std::move(rendered),
                              is_true(pattern_of(storage_class, kAllowUnsafePathPattern)), claim);
    if (auto* refusal = std::get_if<Refusal>(&folder)) return std::move(*refusal);
    result.folder = std::get<std::string>(std::move(folder));
  } else {
    result.folder = std::string(volume_name) + "_" + claim.meta.ns + "_" + claim.meta.name;
  }

  struct Owner {
    std::string_view pattern;
    std::string& target;
    bool (*valid)(std::string_view);
    std::string_view wanted;
  };
  const std::array<Owner, 3> owners{
      {{kUserPattern, result.user, is_owner, "a user name or numeric ID"},
       {kGroupPattern, result.group, is_owner, "a group name or numeric ID"},
       {kPermPattern, result.perm, is_mode, "an octal mode such as 0750"}}};
  for (const Owner& owner : owners) {
    const std::string* pattern = pattern_of(storage_class, owner.pattern);
    if (pattern == nullptr) continue;
    auto rendered = render(*pattern, owner.pattern, claim, volume_name);
    if (!rendered.ok()) return Refusal{.message = rendered.error().message};
    owner.target = std::string(trim_blanks(*rendered));
    if (!owner.target.empty() && !owner.valid(owner.target)) {
      return Refusal{.message = std::string(owner.pattern) + " gives \"" + owner.target +
                                "\", which is not " + std::string(owner.wanted)};
    }
  }
  return result;
}

}  // namespace lpp::provisioner
