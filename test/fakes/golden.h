// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "fakes/setting.h"
#include "places/places.h"

namespace lpp::testing {

/// The whole objects that tests expect, of one file of test/data/golden/. The first of them stands
/// there as it is, each other one as what it has other than one `like` it:
///   "create-nested": {"like": "create", "removed": ["/spec/a"], "set": {"/metadata/name": "x"}}
class Golden {
 public:
  using json = nlohmann::json;

  explicit Golden(const std::string& file)
      : file_(repository("test/data/golden/" + file + ".json")) {
    std::ifstream stored(file_);
    cases_ = json::parse(stored, nullptr, false);
    REQUIRE_MESSAGE(cases_.is_object(), file_ << ": not JSON");
  }

  /// Compares. With LPP_UPDATE_GOLDEN=1 in the environment a case that differs is written anew: the
  /// test fails that once, so that nobody takes it for one that has compared anything. Read the
  /// difference before you keep it.
  void check(const std::string& name, const json& object) {
    const json wanted = cases_.contains(name) ? whole(name) : json();
    if (wanted == object) return;
    if (setting("LPP_UPDATE_GOLDEN")) write(name, object);
    FAIL_CHECK(name << " differs (LPP_UPDATE_GOLDEN=1 writes it):\n"
                    << json::diff(wanted, object).dump(2));
  }

 private:
  json whole(const std::string& name) const {
    const json& stored = cases_.at(name);
    if (!stored.contains("like")) return stored;
    json object = whole(stored.at("like"));
    for (const std::string path : stored.value("removed", json::array())) {
      const json::json_pointer pointer(path);
      json& parent = object.at(pointer.parent_pointer());
      if (parent.is_array()) parent.erase(std::stoul(pointer.back()));
      if (parent.is_object()) parent.erase(pointer.back());
    }
    const json set = stored.value("set", json::object());
    for (const auto& [path, value] : set.items()) {
      object[json::json_pointer(path)] = value;
    }
    return object;
  }

  /// Into `out`, what makes `from` to `to`.
  static void tell_apart(const json& from, const json& to, const json::json_pointer& at,
                         json& out) {
    if (from == to) return;
    const bool objects = from.is_object() && to.is_object();
    if (!objects && !(from.is_array() && to.is_array())) {
      out["set"][at.to_string()] = to;
      return;
    }
    const auto compare = [&](const auto& key) {
      const json* const before = has(from, key) ? &from[key] : nullptr;
      if (!has(to, key)) {
        out["removed"].push_back((at / key).to_string());
      } else if (before == nullptr) {
        out["set"][(at / key).to_string()] = to[key];
      } else {
        tell_apart(*before, to[key], at / key, out);
      }
    };
    if (objects) {
      json keys = from;
      keys.update(to);
      for (const auto& [key, value] : keys.items()) compare(key);
    } else {  // from behind, as what is removed moves what follows
      for (std::size_t i = std::max(from.size(), to.size()); i-- > 0;) compare(i);
    }
  }
  static bool has(const json& object, const std::string& key) { return object.contains(key); }
  static bool has(const json& array, std::size_t index) { return index < array.size(); }

  /// The others stay what they are, also those that are like this one.
  void write(const std::string& name, const json& object) {
    std::map<std::string, json> objects;
    std::string first;
    for (const auto& [key, stored] : cases_.items()) {
      objects[key] = whole(key);
      if (!stored.contains("like")) first = key;
    }
    objects[name] = object;
    for (const auto& [key, made] : objects) {
      json stored = made;
      if (key != first) {
        const json like = cases_.contains(key) ? cases_[key]["like"] : json(first);
        stored = {{"like", like}};
        tell_apart(objects.at(like), made, json::json_pointer(), stored);
      }
      cases_[key] = std::move(stored);
    }
    std::ofstream out(file_);
    std::string separator = "{\n";
    for (const auto& [key, stored] : cases_.items()) {
      out << std::exchange(separator, ",\n") << json(key).dump() << ": ";
      if (key == first) {
        out << stored.dump(2);
        continue;
      }
      out << "{\"like\": " << stored["like"].dump();
      if (stored.contains("removed")) out << ",\n  \"removed\": " << stored["removed"].dump();
      std::string begin = ",\n  \"set\": {\n    ";
      const json set = stored.value("set", json::object());
      for (const auto& [path, value] : set.items()) {
        out << std::exchange(begin, ",\n    ") << json(path).dump() << ": " << value.dump();
      }
      out << (stored.contains("set") ? "}}" : "}");
    }
    out << "\n}\n";
  }

  const std::string file_;
  json cases_;
};

inline void check_golden(const std::string& file, const std::string& name,
                         const nlohmann::json& object) {
  Golden(file).check(name, object);
}

}  // namespace lpp::testing
