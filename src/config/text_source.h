// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/informer.h"

namespace lpp::config {

/// A text that may change while we run: config.json or helperPod.yaml. The observer is called with
/// the first state before start() returns, and then, from the source's own thread, after every
/// change (or when the text can no longer be read: then with the Error). It is not called twice in
/// a row with the same text. stop() ends the thread in milliseconds; the observer is not called
/// after. start() and stop() are called once each, not from the observer; the destructor stops.
class TextSource {
 public:
  using Observer = std::function<void(const Result<std::string>&)>;
  virtual ~TextSource() = default;
  virtual void start(Observer observer) = 0;
  virtual void stop() = 0;
  /// For messages: the file's name, or "ConfigMap ns/name, key config.json".
  virtual const std::string& name() const = 0;
};

/// Both the same text, or errors that say the same.
bool same_text(const Result<std::string>& a, const Result<std::string>& b);

/// A constant (inline --config text): observed once.
std::unique_ptr<TextSource> make_inline_source(std::string name, std::string text);

/// A file, watched through inotify on its folder, so that the symlink swap of a mounted ConfigMap,
/// a rename over it, deletion and re-creation are all seen at once; where inotify cannot be had it
/// is read every few seconds instead. Thread "cfg-file".
std::unique_ptr<TextSource> make_file_source(std::string file, Clock& clock);

/// One key of one ConfigMap through an informer that watches only that object. The informer belongs
/// to the caller, may serve several sources, and must outlive them; it is started after the sources
/// are made (they add handlers) and before they are started. start() waits for its first list at
/// most `first_list_limit`, then observes an Error (and the text as soon as it arrives);
/// `process_stop` ends that wait, and nothing is observed. The observer runs on the informer's
/// thread: it must be quick, as any handler.
std::unique_ptr<TextSource> make_config_map_source(
    k8s::Informer<k8s::ConfigMap>& informer, k8s::ObjectKey config_map, std::string key,
    Clock& clock, Duration first_list_limit = std::chrono::seconds(10),
    const std::stop_token& process_stop = {});

}  // namespace lpp::config
