// SPDX-License-Identifier: Apache-2.0
#include "config/config_parser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>

#include "base/paths.h"
#include "base/strings.h"
#include "config/base_path.h"
#include "config/json_text.h"
#include "text/edit_distance.h"

namespace lpp::config {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxReported = 10;

constexpr std::array<std::string_view, 7> kTopKeys = {
    "cmdTimeoutSeconds",    "nodePathMap",         "resizeCommand",  "setupCommand",
    "sharedFileSystemPath", "storageClassConfigs", "teardownCommand"};
constexpr std::array<std::string_view, 2> kClassKeys = {"nodePathMap", "sharedFileSystemPath"};
constexpr std::array<std::string_view, 3> kNodeKeys = {"node", "paths", "requireMount"};

std::string join(const std::vector<std::string>& messages) {
  std::string text;
  for (const auto& message : messages) {
    if (!text.empty()) text += "; ";
    text += message;
  }
  return text;
}

/// Messages in order; beyond a limit they are only counted.
class Messages {
 public:
  void add(const std::string& path, std::string_view what) {
    ++count_;
    if (kept_.size() < kMaxReported) {
      kept_.push_back((path.empty() ? "" : path + ": ") + std::string(what));
    }
  }
  bool empty() const { return count_ == 0; }
  bool full() const { return kept_.size() == kMaxReported; }
  std::size_t count() const { return count_; }
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::size_t count_ = 0;
  std::vector<std::string> kept_;
};

/// One configured path and where it stands, to find paths inside one another.
struct PlacedPath {
  std::string node;  // "" = shared by all nodes
  std::string path;
  std::string place;
};

class Parser {
 public:
  Config parse(const json& root) {
    Config config;
    if (root.is_null()) {
      errors.add("", "must be an object, is null");
      return config;
    }
    const auto members = fields(root, "", kTopKeys);
    config.cmd_timeout = timeout(member(members, "cmdTimeoutSeconds"));
    config.setup_command = text(member(members, "setupCommand"), "setupCommand");
    config.teardown_command = text(member(members, "teardownCommand"), "teardownCommand");
    config.resize_command = text(member(members, "resizeCommand"), "resizeCommand");
    classes(member(members, "storageClassConfigs"), config);
    top_level_paths(members, config);
    overlaps();
    return config;
  }

  Messages errors;
  Messages warnings;

 private:
  using Members = std::map<std::string_view, const json*>;

  static const json* member(const Members& members, std::string_view key) {
    const auto it = members.find(key);
    return it == members.end() ? nullptr : it->second;
  }

  /// The known members of an object by their proper name. Keys match without regard to case, as
  /// Go's decoder matches them; of several spellings the exact one counts. Null is absent.
  template <std::size_t N>
  Members fields(const json& object, const std::string& path,
                 const std::array<std::string_view, N>& known) {
    Members members;
    if (!object.is_object()) {
      errors.add(path, "must be an object, is " + shown(object));
      return members;
    }
    for (const auto& [key, value] : object.items()) {
      const auto it = std::find_if(known.begin(), known.end(), [lower = to_lower(key)](auto name) {
        return to_lower(name) == lower;
      });
      if (it == known.end()) {
        unknown_key(key, path, known);
        continue;
      }
      const bool exact = key == *it;
      if (members.count(*it) > 0 || (!exact && object.contains(*it))) {
        warnings.add(path, "key " + std::string(*it) + " is also spelled " + shown(key));
      }
      if (exact || !object.contains(*it)) members[*it] = value.is_null() ? nullptr : &value;
    }
    return members;
  }

  template <std::size_t N>
  void unknown_key(const std::string& key, const std::string& path,
                   const std::array<std::string_view, N>& known) {
    std::string text = "unknown key " + shown(key) + " is ignored";
    constexpr std::size_t kLongest = 40;
    if (key.size() <= kLongest && !warnings.full()) {
      const auto distance = [lower = to_lower(key)](std::string_view name) {
        return text::edit_distance(lower, to_lower(name));
      };
      const auto nearest = *std::min_element(
          known.begin(), known.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
      if (distance(nearest) <= nearest.size() / 3 + 1) {
        text += "; did you mean \"" + std::string(nearest) + "\"?";
      }
    }
    warnings.add(path, text);
  }

  std::string text(const json* value, const std::string& path) {
    if (value == nullptr) return {};
    if (!value->is_string()) {
      errors.add(path, "must be a string, is " + shown(*value));
      return {};
    }
    auto result = value->get<std::string>();
    if (result.find('\0') != std::string::npos) errors.add(path, "must not hold a NUL character");
    return result;
  }

  std::chrono::seconds timeout(const json* value) {
    constexpr std::chrono::seconds kDefault{120};
    if (value == nullptr) return kDefault;
    const std::string path = "cmdTimeoutSeconds";
    if (!value->is_number_integer()) {
      errors.add(path, "must be an integer, is " + shown(*value));
      return kDefault;
    }
    const bool too_big = value->is_number_unsigned() &&
                         value->get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max();
    if (too_big) {
      errors.add(path, "must be at most " +
                           std::to_string(std::numeric_limits<std::int32_t>::max()) + ", is " +
                           shown(*value));
      return kDefault;
    }
    const auto seconds = value->get<std::int64_t>();
    return seconds <= 0 ? kDefault : std::chrono::seconds(seconds);
  }

  void classes(const json* value, Config& config) {
    if (value == nullptr) return;
    const std::string path = "storageClassConfigs";
    if (!value->is_object()) return errors.add(path, "must be an object, is " + shown(*value));
    for (const auto& [name, entry] : value->items()) {
      const std::string place = path + "[" + shown(name) + "]";
      if (name.empty()) {
        errors.add(place, "the name of a class must not be empty");
        continue;
      }
      const auto members = fields(entry, place, kClassKeys);
      PathConfig paths = path_config(members, place + ".");
      if (entry.is_object() && paths_absent(members)) {
        errors.add(place, "needs nodePathMap or sharedFileSystemPath");
      }
      config.classes.insert_or_assign(name, std::move(paths));
    }
  }

  static bool paths_absent(const Members& members) {
    const json* map = member(members, "nodePathMap");
    const json* shared = member(members, "sharedFileSystemPath");
    return (map == nullptr || (map->is_array() && map->empty())) &&
           (shared == nullptr || *shared == "");
  }

  /// The paths of classes without an entry. Beside a storageClassConfigs they were never read by
  /// older versions: what is wrong there must not stop a cluster whose classes are right.
  void top_level_paths(const Members& members, Config& config) {
    if (config.classes.empty()) {
      config.paths = path_config(members, "");
      if (paths_absent(members)) {
        errors.add("", "needs nodePathMap, sharedFileSystemPath or storageClassConfigs");
      }
      return;
    }
    Parser apart;
    PathConfig paths = apart.path_config(members, "");
    for (const auto& message : apart.warnings.kept()) warnings.add("", message);
    for (const auto& message : apart.errors.kept()) {
      warnings.add("",
                   message + " (so classes without an entry in storageClassConfigs get no paths)");
    }
    if (!apart.errors.empty()) return;
    config.paths = std::move(paths);
    placed_.insert(placed_.end(), apart.placed_.begin(), apart.placed_.end());
  }

  PathConfig path_config(const Members& members, const std::string& prefix) {
    PathConfig result;
    const std::string map_place = prefix + "nodePathMap";
    const std::string shared_place = prefix + "sharedFileSystemPath";
    if (const auto* map = member(members, "nodePathMap"); map != nullptr) {
      node_path_map(*map, map_place, result);
    }
    const std::string shared = text(member(members, "sharedFileSystemPath"), shared_place);
    if (!shared.empty()) {
      result.shared_file_system_path = base_path(shared, shared_place, "");
      if (const auto* map = member(members, "nodePathMap");
          map != nullptr && map->is_array() && !map->empty()) {
        errors.add(shared_place, "cannot be used together with nodePathMap");
      }
    }
    return result;
  }

  void node_path_map(const json& map, const std::string& place, PathConfig& result) {
    if (!map.is_array()) return errors.add(place, "must be a list, is " + shown(map));
    for (std::size_t i = 0; i < map.size(); ++i) {
      const std::string entry_place = place + "[" + std::to_string(i) + "]";
      const auto members = fields(map[i], entry_place, kNodeKeys);
      if (!map[i].is_object()) continue;
      const std::string node_place = entry_place + ".node";
      const auto* node_value = member(members, "node");
      const std::string node = text(node_value, node_place);
      if (node.empty() && (node_value == nullptr || node_value->is_string())) {
        errors.add(node_place, "must not be empty");
      }
      auto paths = node_paths(member(members, "paths"), entry_place + ".paths", node);
      const json* const mount = member(members, "requireMount");
      if (mount != nullptr && !mount->is_boolean()) {
        errors.add(entry_place + ".requireMount", "must be true or false, is " + shown(*mount));
      }
      if (node.empty()) continue;
      if (mount != nullptr && *mount == true) result.mount_nodes.insert(node);
      if (!result.node_path_map.emplace(node, std::move(paths)).second) {
        errors.add(node_place, "node " + shown(node) + " is listed twice");
      }
    }
  }

  std::vector<std::string> node_paths(const json* value, const std::string& place,
                                      const std::string& node) {
    std::vector<std::string> paths;
    if (value == nullptr) return paths;
    if (!value->is_array()) {
      errors.add(place, "must be a list, is " + shown(*value));
      return paths;
    }
    std::set<std::string> seen;
    for (std::size_t i = 0; i < value->size(); ++i) {
      const json& entry = (*value)[i];
      const std::string entry_place = place + "[" + std::to_string(i) + "]";
      if (!entry.is_string()) {
        errors.add(entry_place, "must be a string, is " + shown(entry));
        continue;
      }
      std::string path = base_path(entry.get<std::string>(), entry_place, node);
      if (path.empty()) continue;
      if (!seen.insert(path).second) {
        errors.add(entry_place, "path " + shown(path) + " is listed twice for node " + shown(node));
        continue;
      }
      paths.push_back(std::move(path));
    }
    return paths;
  }

  /// The clean path, or "" after an error.
  std::string base_path(const std::string& path, const std::string& place,
                        const std::string& node) {
    PathCheck check = check_base_path(path);
    if (check.verdict == PathVerdict::kRefused) {
      errors.add(place, check.reason + (path.empty() ? "" : ", is " + shown(path)));
      return {};
    }
    if (check.verdict == PathVerdict::kRisky) {
      warnings.add(place, shown(path) + " " + check.reason);
    }
    placed_.push_back({node, check.clean, place});
    return check.clean;
  }

  /// Warns about paths of one node of which one lies inside the other. Sorted, so that a folder
  /// stands before everything below it.
  void overlaps() {
    std::sort(placed_.begin(), placed_.end(), [](const PlacedPath& a, const PlacedPath& b) {
      // With a slash at the end, "/a" stands directly before "/a/b" and not before "/a-b".
      return std::make_pair(a.node, a.path + '/') < std::make_pair(b.node, b.path + '/');
    });
    std::vector<const PlacedPath*> open;  // folders that may hold the next path
    for (const PlacedPath& next : placed_) {
      while (!open.empty() &&
             (open.back()->node != next.node || !is_at_or_below(next.path, open.back()->path))) {
        open.pop_back();
      }
      if (!open.empty() && open.back()->path != next.path) {
        warnings.add(next.place, shown(next.path) + " lies inside " + shown(open.back()->path) +
                                     " of " + open.back()->place +
                                     ": a volume there could hold another's directory");
      }
      if (open.empty() || open.back()->path != next.path) open.push_back(&next);
    }
  }

  std::vector<PlacedPath> placed_;
};

}  // namespace

ConfigInspection inspect_config(std::string_view text) {
  ConfigInspection result;
  try {
    auto parsed = parse_json_text(text);
    if (!parsed.ok()) {
      result.errors.push_back(parsed.error().message);
      return result;
    }
    Parser parser;
    Config config = parser.parse(parsed->value);
    result.errors = parser.errors.kept();
    if (const std::size_t more = parser.errors.count() - result.errors.size(); more > 0) {
      result.errors.push_back("and " + std::to_string(more) + " more");
    }
    if (result.errors.empty()) result.config = std::move(config);
    Messages warnings;
    for (const auto& warning : parsed->warnings) warnings.add("", warning);
    for (const auto& warning : parser.warnings.kept()) warnings.add("", warning);
    result.warnings = warnings.kept();
  } catch (const std::exception& e) {
    result.config.reset();
    result.errors.emplace_back(e.what());
  }
  return result;
}

Result<ParsedConfig> parse_config(std::string_view text, std::string_view name) {
  ConfigInspection inspection = inspect_config(text);
  if (!inspection.config) return invalid(std::string(name) + ": " + join(inspection.errors));
  ParsedConfig result{.config = *std::move(inspection.config), .warnings = {}};
  for (const auto& warning : inspection.warnings) {
    result.warnings.push_back(std::string(name) + ": " + warning);
  }
  return result;
}

std::span<const std::string_view> top_level_keys() { return kTopKeys; }
std::span<const std::string_view> class_entry_keys() { return kClassKeys; }
std::span<const std::string_view> node_entry_keys() { return kNodeKeys; }

}  // namespace lpp::config
