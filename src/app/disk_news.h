// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>

#include "base/sync.h"
#include "k8s/event_recorder.h"
#include "k8s/objects.h"
#include "k8s/store.h"

namespace lpp::app {

/// Tells people of base paths whose disk is missing or another one, and that it is back: an Event
/// on the Node and a line in the log, once for each change. Thread-safe.
class DiskNews {
 public:
  DiskNews(k8s::EventSink& events, const k8s::Store<k8s::Node>& nodes)
      : events_(events), nodes_(nodes) {}

  /// `why` nothing can be made there now, see Executor::why_unfit(); "" = it can.
  void look(const std::string& node, const std::string& base_path, const std::string& why);

 private:
  void tell(const std::string& node, k8s::EventType type, std::string_view reason,
            const std::string& message) const;

  k8s::EventSink& events_;
  const k8s::Store<k8s::Node>& nodes_;
  Mutex mutex_;
  std::set<std::pair<std::string, std::string>> unfit_ LPP_GUARDED_BY(mutex_);  // node, base path
};

}  // namespace lpp::app
