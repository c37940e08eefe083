// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/sync.h"
#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// Writes Events about objects as one component ("kubelet", "default-scheduler", ...). The same
/// event again raises the count of the stored one. Failures are ignored: events are for people.
/// Thread-safe.
class EventEmitter {
 public:
  /// `host` is the node for the kubelet's events, else empty.
  EventEmitter(Registry& registry, Clock& clock, std::string component, std::string host = {});

  void normal(const nlohmann::json& object, std::string_view reason, std::string_view message) {
    emit(object, "Normal", reason, message);
  }
  void warning(const nlohmann::json& object, std::string_view reason, std::string_view message) {
    emit(object, "Warning", reason, message);
  }

 private:
  void emit(const nlohmann::json& object, std::string_view type, std::string_view reason,
            std::string_view message);

  Registry& registry_;
  Clock& clock_;
  const std::string component_;
  const std::string host_;

  Mutex mutex_;
  std::map<std::string, std::string> stored_ LPP_GUARDED_BY(mutex_);  // what was said -> event name
};

}  // namespace lpp::devcluster
