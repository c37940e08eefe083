// SPDX-License-Identifier: Apache-2.0
#include "provisioner/reporter.h"

#include "base/log.h"
#include "base/strings.h"
#include "k8s/event_correlator.h"

namespace lpp::provisioner {

namespace {

/// What heals by itself has done so after so many tries, the back-off between them.
constexpr int kPatience = 3;

}  // namespace

bool Reporter::heals_by_itself(const Error& error) {
  switch (error.code) {
    case ErrorCode::kForbidden:
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kInternal:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kConflict: return false;
    default: return true;
  }
}

void Reporter::failed(const Subject& subject, std::string reason, const std::string& message) {
  Failure failure = subject.failure;
  failure.reason = std::move(reason);
  failure.message = message;
  world_.figures.failed(std::move(failure));
  tell(subject, message);
}

void Reporter::tell(const Subject& subject, const std::string& message) {
  if (!memories_.worth_saying(subject.failure.volume, subject.event_reason, message)) return;
  const std::string text = subject.prefix + message;
  world_.events.event(subject.about, k8s::EventType::kWarning, subject.event_reason, text);
  log::warn("{}", truncate_utf8(first_line(text), k8s::kMaxEventMessage));
}

Result<void> Reporter::tell_for_good(const Subject& subject, const std::string& message) {
  const std::string& volume = subject.failure.volume;
  if (!memories_.worth_saying(volume, subject.event_reason, message)) return {};
  const std::string text = subject.prefix + message;
  const auto stored =
      world_.events.store(subject.about, k8s::EventType::kWarning, subject.event_reason, text);
  if (!stored.ok()) {
    memories_.unsay(volume, subject.event_reason);
    return stored.error().wrap("store the Event " + std::string(subject.event_reason));
  }
  log::warn("{}", truncate_utf8(first_line(text), k8s::kMaxEventMessage));
  return {};
}

Action Reporter::api_failed(const Subject& subject, const Error& error) {
  if (error.is(ErrorCode::kCancelled)) return Action::done();
  Memory memory = memories_.get(subject.failure.volume);
  const int troubles = heals_by_itself(error) ? ++memory.troubles : kPatience;
  memories_.set(subject.failure.volume, std::move(memory));
  if (troubles >= kPatience) {
    failed(subject, reason_of(error), error.message);
    return Action::retry();
  }
  Failure failure = subject.failure;
  failure.reason = reason_of(error);
  failure.message = error.message;
  world_.figures.failed(std::move(failure));
  log::warn("tried again soon: {}", truncate_utf8(error.message, k8s::kMaxEventMessage));
  return Action::retry();
}

Action Reporter::turned_away(const Subject& subject, const std::string& node, Duration patience,
                             Memory& memory) {
  const TimePoint now = world_.clock.now();
  if (!memory.turned_away) memory.turned_away = now;
  memories_.set(subject.failure.volume, memory);
  if (now - *memory.turned_away >= patience) {
    tell(subject, "waits for its turn, too much is being done at once on node " + node);
  }
  return Action::await_change(kRecheck);
}

}  // namespace lpp::provisioner
