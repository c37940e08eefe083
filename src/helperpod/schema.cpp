// SPDX-License-Identifier: Apache-2.0
#include "helperpod/schema.h"

#include <cmath>
#include <utility>

#include "base/strings.h"
#include "k8s/json_writer.h"
#include "k8s/quantity.h"

namespace lpp::helperpod {

namespace {

using nlohmann::json;

class Checker {
 public:
  Checker(bool allow_unsafe, Findings& findings)
      : allow_unsafe_(allow_unsafe), findings_(findings) {}

  void visit(json& value, const Schema& schema, const std::string& path) {
    switch (schema.kind) {
      case Kind::kAny: return;
      case Kind::kString: return require(value.is_string(), value, path, "must be a string");
      case Kind::kBool: return require(value.is_boolean(), value, path, "must be true or false");
      case Kind::kInteger: return integer(value, path);
      case Kind::kQuantity: return quantity(value, path);
      case Kind::kStringMap: return string_map(value, path);
      case Kind::kObject: return object(value, schema, path);
      case Kind::kList: return list(value, schema, path);
    }
  }

 private:
  void error(const std::string& path, const std::string& what) {
    findings_.errors.push_back(path + " " + what);
  }

  void require(bool good, const json& value, const std::string& path, const std::string& what) {
    if (good) return;
    const bool quote = what == "must be a string" && value.is_primitive();
    error(path, what + ", is " + shown(value) + (quote ? " (put it in quotes)" : ""));
  }

  void integer(json& value, const std::string& path) {
    if (value.is_number_float()) {
      const double number = value.get<double>();
      if (std::trunc(number) == number && std::abs(number) < 1e15) {
        value = static_cast<std::int64_t>(number);
      }
    }
    require(value.is_number_integer(), value, path, "must be an integer");
  }

  void quantity(const json& value, const std::string& path) {
    const std::string text = value.is_string()   ? value.get<std::string>()
                             : value.is_number() ? value.dump()
                                                 : "?";
    require(k8s::Quantity::parse(text).ok(), value, path,
            "must be a quantity such as 100m or 64Mi");
  }

  void string_map(json& value, const std::string& path) {
    if (!value.is_object()) return require(false, value, path, "must be a mapping");
    for (auto it = value.begin(); it != value.end(); ++it) {
      if (it->is_null()) *it = "";  // as Go's decoder reads it
      std::string place = path;
      place.append("[\"").append(it.key()).append("\"]");
      require(it->is_string(), *it, place, "must be a string");
    }
  }

  void list(json& value, const Schema& schema, const std::string& path) {
    if (!value.is_array()) return require(false, value, path, "must be a list");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      if (value[i].is_null()) {
        error(place, "must not be null");
      } else {
        visit(value[i], i > 0 && schema.others != nullptr ? *schema.others : *schema.item, place);
      }
    }
  }

  void object(json& value, const Schema& schema, const std::string& path) {
    if (!value.is_object()) return require(false, value, path, "must be a mapping");
    json canonical = json::object();
    for (auto& [name, member] : value.items()) {
      const Field* field = find_field(schema, name);
      std::string place = path;
      if (!place.empty()) place += '.';
      place += name;
      if (field == nullptr) {
        unknown(canonical, name, member, place);
      } else if (!member.is_null() && field->rule != Rule::kDropped &&
                 admit(*field, member, place)) {
        // An exact name wins over one that differs in case.
        if (name != field->name && value.contains(field->name)) continue;
        visit(member, *field->type, place);
        canonical[std::string(field->name)] = std::move(member);
      }
    }
    value = std::move(canonical);
  }

  static const Field* find_field(const Schema& schema, std::string_view name) {
    for (const Field& field : schema.fields) {
      if (field.name == name) return &field;
    }
    const std::string lower = to_lower(name);
    for (const Field& field : schema.fields) {
      if (to_lower(field.name) == lower) return &field;
    }
    return nullptr;
  }

  void unknown(json& canonical, const std::string& name, json& member, const std::string& place) {
    if (allow_unsafe_) {
      canonical[name] = std::move(member);  // the API server knows better what it knows
      return;
    }
    findings_.warnings.push_back(place + " is not known in helper pod templates and is left out");
  }

  /// Applies the field's rule; true when it goes on into the pod.
  bool admit(const Field& field, const json& member, const std::string& place) {
    if (field.rule == Rule::kReplaced) {
      findings_.warnings.push_back(place + " is set by the provisioner; the template's is ignored");
      return false;
    }
    if (allow_unsafe_ || field.rule == Rule::kAllow) return true;
    if (field.rule == Rule::kRefuseZero) {
      if (!member.is_number() || member != 0) return true;
      refuse("set " + place + " to 0");
      return false;
    }
    if (member == false) return true;  // said on purpose: allowPrivilegeEscalation is true unset
    const bool nothing = (member.is_structured() && member.empty()) || member == "" || member == 0;
    if (!nothing) refuse("set " + place + (member == true ? " to true" : ""));
    return false;
  }

  void refuse(const std::string& what) {
    findings_.errors.push_back("helper pod template must not " + what +
                               " unless allow-unsafe-helper-pod-template is enabled");
  }

  const bool allow_unsafe_;
  Findings& findings_;
};

}  // namespace

void check(json& value, const Schema& schema, const std::string& path, bool allow_unsafe,
           Findings& findings) {
  Checker(allow_unsafe, findings).visit(value, schema, path);
}

std::string shown(const json& value) {
  if (value.is_object()) return "a mapping";
  if (value.is_array()) return "a list";
  const std::string text = k8s::write_json(value);
  return text.size() <= 80 ? text : std::string(truncate_utf8(text, 80)) + "...";
}

}  // namespace lpp::helperpod
