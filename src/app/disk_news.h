// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/sync.h"
#include "k8s/event_recorder.h"
#include "k8s/objects.h"
#include "k8s/store.h"

namespace lpp::app {

/// Tells people of base paths whose disk is missing or another one, and that it is back: an Event
/// on the Node and a line in the log, once for each change. The Event of a Node that is not known
/// yet is told by a later look. Thread-safe.
class DiskNews {
 public:
  DiskNews(k8s::EventSink& events, const k8s::Store<k8s::Node>& nodes)
      : events_(events), nodes_(nodes) {}

  /// `why` nothing can be made there now, see Executor::why_unfit(); "" = it can.
  void look(const std::string& node, const std::string& base_path, const std::string& why);

 private:
  /// Of what is missing, what was told.
  struct Told {
    bool in_log = false;
    bool in_event = false;
    bool any() const { return in_log || in_event; }
  };

  k8s::EventSink& events_;
  const k8s::Store<k8s::Node>& nodes_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Told> told_ LPP_GUARDED_BY(mutex_);  // node, path
};

}  // namespace lpp::app
