// SPDX-License-Identifier: Apache-2.0
#include "app/config_loader.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "config/config_parser.h"

namespace lpp::app {

namespace {

/// Event reason of a refused update of either text.
constexpr std::string_view kConfigRefused = "ConfigRefused";

}  // namespace

ConfigLoader::ConfigLoader(Settings settings, std::unique_ptr<config::TextSource> config_source,
                           std::unique_ptr<config::TextSource> template_source,
                           k8s::ApiClient& client, k8s::EventSink& events, Clock& clock)
    : settings_(std::move(settings)),
      config_source_(std::move(config_source)),
      template_source_(std::move(template_source)),
      client_(client),
      events_(events),
      clock_(clock) {}

ConfigLoader::~ConfigLoader() { stop(); }

Result<void> ConfigLoader::start() {
  LPP_RETURN_IF_ERROR(start(*config_source_, "configuration", config_counts_,
                            [this](const Result<std::string>& text) { return take_config(text); }),
                      "start");
  LPP_RETURN_IF_ERROR(
      start(*template_source_, "helper pod template", template_counts_,
            [this](const Result<std::string>& text) { return take_template(text); }),
      "start");
  return {};
}

/// Starts one source. What it delivers while it starts decides about our start; what is wrong later
/// is only refused.
Result<void> ConfigLoader::start(config::TextSource& source, std::string what, Counts& counts,
                                 Take take) {
  struct First {
    Mutex mutex;
    bool over LPP_GUARDED_BY(mutex) = false;
    Result<void> result LPP_GUARDED_BY(mutex);
  };
  auto first = std::make_shared<First>();
  source.start([this, first, what = std::move(what), &counts,
                take = std::move(take)](const Result<std::string>& text) {
    Result<void> taken = take(text);
    {
      MutexLock lock(first->mutex);
      if (!first->over) {
        first->result = std::move(taken);
        return;
      }
    }
    if (!taken.ok()) refuse(what, taken.error(), counts);
  });
  MutexLock lock(first->mutex);
  first->over = true;
  return std::move(first->result);
}

void ConfigLoader::stop() {
  config_source_->stop();
  template_source_->stop();
}

Result<void> ConfigLoader::take_config(const Result<std::string>& text) {
  if (!text.ok()) return text.error();
  LPP_ASSIGN_OR_RETURN(auto parsed, config::parse_config(*text, config_source_->name()),
                       "configuration");
  for (const std::string& warning : parsed.warnings) log::warn("configuration: {}", warning);
  parsed.config.generation = config_counts_.accepted + 1;
  config_.publish(std::make_shared<const config::Config>(std::move(parsed.config)));
  accepted(config_counts_);
  log::info("configuration loaded from {}", config_source_->name());
  if (changed_) changed_();
  return {};
}

Result<void> ConfigLoader::take_template(const Result<std::string>& text) {
  if (!text.ok()) return text.error();
  LPP_ASSIGN_OR_RETURN(
      auto parsed,
      helperpod::parse_template(*text, template_source_->name(), settings_.allow_unsafe_template),
      "helper pod template");
  for (const std::string& warning : parsed.warnings) log::warn("helper pod template: {}", warning);
  template_.publish(std::make_shared<const helperpod::Template>(std::move(parsed)));
  accepted(template_counts_);
  log::info("helper pod template loaded from {}", template_source_->name());
  return {};
}

void ConfigLoader::accepted(Counts& counts) {
  ++counts.accepted;
  counts.accepted_at = clock_.wall_now();
  counts.refusal.publish(nullptr);
}

void ConfigLoader::refuse(const std::string& what, const Error& error, Counts& counts) {
  ++counts.refused;
  counts.refusal.publish(std::make_shared<const std::string>(error.message));
  log::error("{} refused, the last good one stays in force: {}", what, error.message);
  k8s::ObjectReference about{.kind = "ConfigMap",
                             .api_version = "v1",
                             .ns = settings_.config_map.ns,
                             .name = settings_.config_map.name,
                             .uid = {}};
  // `kubectl describe` finds Events by UID. Without one the Event is still in the list of Events.
  if (const auto object = client_.get(k8s::kConfigMaps, settings_.config_map); object.ok()) {
    about.uid = object->value("/metadata/uid"_json_pointer, std::string());
  }
  events_.event(
      about, k8s::EventType::kWarning, kConfigRefused,
      "The new " + what + " is refused, the last good one stays in force: " + error.message);
}

}  // namespace lpp::app
