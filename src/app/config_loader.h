// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/sync.h"
#include "config/config.h"
#include "config/published.h"
#include "config/text_source.h"
#include "helperpod/template.h"
#include "k8s/api_client.h"
#include "k8s/event_recorder.h"

namespace lpp::app {

/// Keeps the configuration and the helper pod template in force: parses what the sources deliver,
/// publishes what is valid, and refuses the rest: then everything stays as it was, with one log
/// line and one Warning Event on the ConfigMap. start() and stop() come from one thread; the rest
/// is thread-safe.
class ConfigLoader {
 public:
  struct Settings {
    k8s::ObjectKey config_map;  // Events about refused updates go there
    bool allow_unsafe_template = false;
  };

  /// What has happened to one of the two texts, for metrics and people. Thread-safe.
  struct Counts {
    std::atomic<std::uint64_t> accepted = 0;
    std::atomic<std::uint64_t> refused = 0;
    /// When the one in force was accepted; the epoch = there is none.
    std::atomic<std::chrono::system_clock::time_point> accepted_at{};
    /// Why the newest text is not in force; nullptr or empty = it is.
    config::Published<std::string> refusal{};
  };

  ConfigLoader(Settings settings, std::unique_ptr<config::TextSource> config_source,
               std::unique_ptr<config::TextSource> template_source, k8s::ApiClient& client,
               k8s::EventSink& events, Clock& clock);
  ~ConfigLoader();

  /// Reads both texts. An Error says what is wrong with the first state; nothing runs then.
  Result<void> start();
  void stop();

  /// Called after each new configuration, from a source's thread. Set before start().
  void on_change(std::function<void()> observer) { changed_ = std::move(observer); }

  const config::Published<config::Config>& config() const { return config_; }
  const config::Published<helperpod::Template>& pod_template() const { return template_; }
  /// Where they come from, for messages.
  const std::string& config_name() const { return config_source_->name(); }
  const std::string& template_name() const { return template_source_->name(); }
  const Counts& config_counts() const { return config_counts_; }
  const Counts& template_counts() const { return template_counts_; }

 private:
  using Take = std::function<Result<void>(const Result<std::string>&)>;

  Result<void> start(config::TextSource& source, std::string what, Counts& counts, Take take);
  Result<void> take_config(const Result<std::string>& text);
  Result<void> take_template(const Result<std::string>& text);
  void accepted(Counts& counts);
  void refuse(const std::string& what, const Error& error, Counts& counts);

  const Settings settings_;
  const std::unique_ptr<config::TextSource> config_source_;
  const std::unique_ptr<config::TextSource> template_source_;
  k8s::ApiClient& client_;
  k8s::EventSink& events_;
  Clock& clock_;
  std::function<void()> changed_;
  config::Published<config::Config> config_;
  config::Published<helperpod::Template> template_;
  Counts config_counts_;
  Counts template_counts_;
};

}  // namespace lpp::app
