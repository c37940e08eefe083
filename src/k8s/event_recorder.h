// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/api_client.h"
#include "k8s/object_reference.h"

namespace lpp::k8s {

enum class EventType { kNormal, kWarning };

/// Where reconcilers put Events. Thread-safe.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Never blocks, never fails the work.
  virtual void event(const ObjectReference& about, EventType type, std::string_view reason,
                     std::string message) = 0;
  /// Makes one API call and returns when the Event is stored, or when nobody will ever store it:
  /// for what is known no more once the caller goes on. The same Event again is the same object.
  /// An error when another try may do better.
  virtual Result<void> store(const ObjectReference& about, EventType type, std::string_view reason,
                             std::string message) = 0;
};

/// Sends Events to the API server from its own thread, with client-go's rules (rule C7):
/// repeated Events become a count, many similar ones one combined Event, a flood per object is
/// dropped. Warnings go first. Normal Events are sent at once while there are few. A burst of work
/// comes before them: 5 per second go out while more are recorded, 20 when they have waited for
/// 10 s, 50 when no more come; one that still waits is replaced by the next one about the same
/// object. An Event that the API server did not store is kept and tried again, with back-off and
/// for an hour, unless that cannot help: its namespace is going, or it is invalid. The queue is
/// bounded, in total and per namespace; what does not fit is dropped and counted.
class EventRecorder final : public EventSink {
 public:
  /// `component` is source.component and reportingComponent. Client and clock must outlive it.
  EventRecorder(ApiClient& client, Clock& clock, std::string component);
  ~EventRecorder() override;

  /// At most once. Events recorded before wait for it.
  void start();
  /// Sends what is queued for at most `limit`, then drops the rest, cancels a request in progress
  /// and ends the thread. Idempotent.
  void stop(Duration limit);

  void event(const ObjectReference& about, EventType type, std::string_view reason,
             std::string message) override;
  /// What may not be written now goes the way of the others. Of an object whose namespace is going
  /// the Event is about the namespace, for that is still there to be looked at.
  Result<void> store(const ObjectReference& about, EventType type, std::string_view reason,
                     std::string message) override;

  /// Hears of each Event that will not be stored, with what event() was given (the message cut to
  /// kMaxEventMessage): whoever counts it as said should say it again. Only a Normal Event that a
  /// newer one about the same object replaced is not told. Too many at once are told as one whose
  /// reference is empty: any may be among them. Called from the recorder's thread without locks,
  /// not any more once stop() has returned. To be set before start().
  using DroppedHook = std::function<void(const ObjectReference& about, std::string_view reason,
                                         std::string_view message)>;
  void on_dropped(DroppedHook hook);

  /// Events that were not stored: queue full, flood of one object, refused, given up, or stopped.
  std::uint64_t dropped() const;

 private:
  class Impl;
  Clock& clock_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lpp::k8s
