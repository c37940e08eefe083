// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "base/sync.h"
#include "config/text_source.h"

namespace lpp::config {

namespace {

using Text = Result<std::string>;

/// Hands texts from the informer's thread and from start() to the observer, one at a time, the
/// newest only. Shared with the informer's handler, which may outlive the source. Thread-safe.
class Mailbox {
 public:
  /// Delivers `first` and what came in since; later posts are delivered by whoever posts them.
  void open(TextSource::Observer observer, Text first) {
    {
      MutexLock lock(mutex_);
      observer_ = std::move(observer);
      if (!pending_.has_value()) pending_ = std::move(first);
      delivering_ = true;  // else who posts now would, and we would return before that is done
    }
    deliver();
  }

  void post(Text text) {
    {
      MutexLock lock(mutex_);
      pending_ = std::move(text);
      // The thread that delivers sees it afterwards.
      if (!observer_ || delivering_) return;
      delivering_ = true;
    }
    deliver();
  }

  /// The observer is not running and will not be called any more when this returns.
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (delivering_) idle_.wait(mutex_);
  }

  bool has_text() const {
    MutexLock lock(mutex_);
    return pending_.has_value();
  }

 private:
  void deliver() {
    MutexLock lock(mutex_);
    while (pending_.has_value() && !closed_) {
      const Text text = *std::exchange(pending_, std::nullopt);
      if (last_.has_value() && same_text(*last_, text)) continue;
      last_ = text;
      const auto observer = observer_;
      lock.unlock();
      observer(text);
      lock.lock();
    }
    delivering_ = false;
    idle_.notify_all();
  }

  mutable Mutex mutex_;
  CondVar idle_;
  TextSource::Observer observer_ LPP_GUARDED_BY(mutex_);
  std::optional<Text> pending_ LPP_GUARDED_BY(mutex_);
  std::optional<Text> last_ LPP_GUARDED_BY(mutex_);
  bool delivering_ LPP_GUARDED_BY(mutex_) = false;
  bool closed_ LPP_GUARDED_BY(mutex_) = false;
};

class ConfigMapSource final : public TextSource {
 public:
  ConfigMapSource(k8s::Informer<k8s::ConfigMap>& informer, k8s::ObjectKey config_map,
                  std::string key, Clock& clock, Duration first_list_limit,
                  const std::stop_token& process_stop)
      : informer_(informer),
        config_map_(std::move(config_map)),
        key_(std::move(key)),
        name_("ConfigMap " + config_map_.to_string() + ", key " + key_),
        clock_(clock),
        first_list_limit_(first_list_limit),
        mailbox_(std::make_shared<Mailbox>()),
        on_process_stop_(process_stop, [this] { stop_.request_stop(); }) {
    informer.add_handler([mailbox = mailbox_, config_map = config_map_, key = key_,
                          name = name_](const k8s::Change<k8s::ConfigMap>& change) {
      if (change.object().meta.key() == config_map) {
        mailbox->post(text_of(change.after.get(), key, name));
      }
    });
  }
  ~ConfigMapSource() override { end(); }

  void start(Observer observer) override {
    // Only the start of the process waits here; nothing else says that a list was empty.
    constexpr std::chrono::milliseconds kStep{10};
    const TimePoint limit = clock_.now() + first_list_limit_;
    const auto token = stop_.get_token();
    while (!informer_.has_synced() && !mailbox_->has_text() && clock_.now() < limit) {
      if (!clock_.sleep_for(kStep, token)) return;
    }
    const auto object = informer_.store().get(config_map_);
    Text first = text_of(object.get(), key_, name_);
    if (!object && !informer_.has_synced()) {
      first = Error{.code = ErrorCode::kTimeout,
                    .message = name_ + ": the API server has not answered yet"};
    }
    mailbox_->open(std::move(observer), std::move(first));
  }

  void stop() override { end(); }
  const std::string& name() const override { return name_; }

 private:
  void end() {
    stop_.request_stop();
    mailbox_->close();
  }

  static Text text_of(const k8s::ConfigMap* object, const std::string& key,
                      const std::string& name) {
    if (object == nullptr) {
      return Error{.code = ErrorCode::kNotFound,
                   .message = name + ": the ConfigMap does not exist"};
    }
    const auto it = object->data.find(key);
    if (it == object->data.end()) {
      return Error{.code = ErrorCode::kNotFound,
                   .message = name + ": the ConfigMap has no such key"};
    }
    return it->second;
  }

  k8s::Informer<k8s::ConfigMap>& informer_;
  const k8s::ObjectKey config_map_;
  const std::string key_;
  const std::string name_;
  Clock& clock_;
  const Duration first_list_limit_;
  std::stop_source stop_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::stop_callback<std::function<void()>> on_process_stop_;
};

}  // namespace

std::unique_ptr<TextSource> make_config_map_source(k8s::Informer<k8s::ConfigMap>& informer,
                                                   k8s::ObjectKey config_map, std::string key,
                                                   Clock& clock, Duration first_list_limit,
                                                   const std::stop_token& process_stop) {
  return std::make_unique<ConfigMapSource>(informer, std::move(config_map), std::move(key), clock,
                                           first_list_limit, process_stop);
}

}  // namespace lpp::config
