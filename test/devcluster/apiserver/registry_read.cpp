// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "devcluster/apiserver/registry_impl.h"
#include "devcluster/apiserver/selectors.h"
#include "k8s/base64.h"

namespace lpp::devcluster {
namespace {

constexpr std::size_t kWatchBatch = 256;

ListReply failed(const Reply& reply) { return ListReply{.code = reply.code, .status = reply.body}; }

std::optional<std::uint64_t> parse_version(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// {"v":"meta.k8s.io/v1","rv":12,"start":"last key sent"}; rv 0 is "whatever is there now".
struct ContinueToken {
  std::uint64_t version = 0;
  std::string last_key{};

  std::string encode() const {
    return k8s::base64_encode(
        dump({{"v", "meta.k8s.io/v1"}, {"rv", version}, {"start", last_key}}));
  }
  static std::optional<ContinueToken> decode(std::string_view text) {
    const auto bytes = k8s::base64_decode(text);
    if (!bytes) return std::nullopt;
    const auto json = parse_json(*bytes);
    if (!json) return std::nullopt;
    const auto version = number_at(*json, {"rv"});
    const std::string start = text_at(*json, {"start"});
    if (!version || *version < 0 || start.empty()) return std::nullopt;
    return ContinueToken{static_cast<std::uint64_t>(*version), start};
  }
};

constexpr std::string_view kContinueTooOld =
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list.";

std::optional<Reply> check_list_options(const ListOptions& options) {
  FieldErrors errors;
  const auto add = [&errors](std::string detail) {
    errors.push_back({.kind = FieldError::Kind::kForbidden,
                      .field = "resourceVersionMatch",
                      .detail = std::move(detail)});
  };
  const std::string& match = options.resource_version_match;
  if (!match.empty()) {
    if (options.resource_version.empty()) {
      add("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (!options.continue_token.empty()) {
      add("resourceVersionMatch is forbidden when continue is provided");
    }
    if (match != "Exact" && match != "NotOlderThan") {
      errors.push_back({.kind = FieldError::Kind::kNotSupported,
                        .field = "resourceVersionMatch",
                        .detail = R"(supported values: "Exact", "NotOlderThan", "")",
                        .value = match});
    } else if (match == "Exact" && options.resource_version == "0") {
      add("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (!errors.empty()) return invalid_kind("meta.k8s.io", "ListOptions", "", errors);
  if (!options.resource_version.empty() && !parse_version(options.resource_version)) {
    return bad_request("Invalid value: \"" + options.resource_version +
                       "\": strconv.ParseUint: parsing \"" + options.resource_version +
                       "\": invalid syntax");
  }
  if (!options.continue_token.empty()) {
    if (!options.resource_version.empty() && options.resource_version != "0") {
      return bad_request("specifying resource version is not allowed when using continue");
    }
    if (!ContinueToken::decode(options.continue_token)) {
      return bad_request("invalid continue token: " + options.continue_token);
    }
  }
  return std::nullopt;
}

}  // namespace

Reply Registry::Impl::get(const ObjectRef& ref) const {
  const auto* info = find_resource(ref.resource);
  if (info == nullptr) return unknown_resource();
  const MutexLock lock(mutex_);
  auto object =
      store_.find(resource_index(*info), Store::key(info->namespaced ? ref.ns : "", ref.name));
  if (object == nullptr) return not_found(*info, ref.name);
  return Reply{200, std::move(object)};
}

ListReply Registry::Impl::list(std::string_view resource, const ListOptions& options) const {
  const auto* info = find_resource(resource);
  if (info == nullptr) return failed(unknown_resource());
  if (auto bad = check_list_options(options)) return failed(*bad);
  const auto labels = LabelSelector::parse(options.label_selector);
  if (!labels.ok()) return failed(bad_request(labels.error().message));
  const auto fields = FieldSelector::parse(options.field_selector, *info);
  if (!fields.ok()) return failed(bad_request(fields.error().message));

  ListReply reply;
  {
    const MutexLock lock(mutex_);
    reply = page_locked(*info, options);
  }
  if (!reply.ok()) return reply;

  // The selection and the page are made from immutable objects, so outside the lock.
  const std::uint64_t version = *parse_version(reply.resource_version);
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(0, options.limit));
  std::vector<ObjectPtr> page;
  std::size_t left = 0;
  for (auto& object : reply.items) {
    if (!labels->matches(*object) || !fields->matches(*object)) continue;
    if (limit != 0 && page.size() == limit) {
      ++left;
    } else {
      page.push_back(std::move(object));
    }
  }
  if (left > 0) {
    const Json& last = *page.back();
    reply.continue_token =
        ContinueToken{version, Store::key(namespace_of(last), name_of(last))}.encode();
    if (labels->empty() && fields->empty()) reply.remaining = static_cast<std::int64_t>(left);
  }
  reply.items = std::move(page);
  return reply;
}

/// Everything that may be on the page, from the version that the options ask for.
ListReply Registry::Impl::page_locked(const ResourceInfo& info, const ListOptions& options) const {
  const auto index = resource_index(info);
  const std::uint64_t current = store_.version();
  std::uint64_t version = current;
  std::string after;
  if (!options.continue_token.empty()) {
    const auto token = *ContinueToken::decode(options.continue_token);
    after = token.last_key;
    if (token.version != 0) version = token.version;
  } else if (!options.resource_version.empty()) {
    const auto wanted = *parse_version(options.resource_version);
    if (wanted > current) return failed(version_too_large(wanted, current));
    if (options.resource_version_match == "Exact") version = wanted;
  }
  const Store::Objects* objects = &store_.objects(index);
  std::optional<Store::Objects> old;
  if (version != current) {
    if (version > current) return failed(version_too_large(version, current));
    old = store_.at_version(index, version);
    if (!old && !after.empty()) {
      return failed(expired(kContinueTooOld, ContinueToken{0, after}.encode()));
    }
    if (!old) {
      return failed(expired("The resourceVersion for the provided list is too old."));
    }
    objects = &*old;
  }
  ListReply reply;
  reply.resource_version = std::to_string(version);
  const std::string prefix = options.ns.empty() ? "" : options.ns + "/";
  for (auto it = after.empty() ? objects->lower_bound(prefix) : objects->upper_bound(after);
       it != objects->end(); ++it) {
    if (!prefix.empty() && !it->first.starts_with(prefix)) {
      if (it->first > prefix) break;
      continue;
    }
    reply.items.push_back(it->second);
  }
  return reply;
}

std::vector<ObjectPtr> Registry::Impl::snapshot(std::size_t resource, std::string_view ns) const {
  std::uint64_t version = 0;
  return std::move(snapshots({resource}, ns, version).front());
}

std::vector<std::vector<ObjectPtr>> Registry::Impl::snapshots(
    const std::vector<std::size_t>& resources, std::string_view ns, std::uint64_t& version) const {
  std::vector<std::vector<ObjectPtr>> out;
  const std::string prefix = ns.empty() ? std::string() : std::string(ns) + "/";
  const MutexLock lock(mutex_);
  for (const auto resource : resources) {
    auto& list = out.emplace_back();
    const auto& objects = store_.objects(resource);
    for (auto it = objects.lower_bound(prefix);
         it != objects.end() && it->first.starts_with(prefix); ++it) {
      list.push_back(it->second);
    }
  }
  version = store_.version();
  return out;
}

std::uint64_t Registry::Impl::version() const {
  const MutexLock lock(mutex_);
  return store_.version();
}

void Registry::Impl::compact() {
  const MutexLock lock(mutex_);
  store_.compact();
  for (auto* waiter : waiters_) waiter->changed.notify_all();
}

void Registry::Impl::stop_watches() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  for (auto* waiter : waiters_) waiter->changed.notify_all();
}

Registry::Impl::Batch Registry::Impl::wait_for_changes(Waiter& waiter, std::uint64_t& cursor,
                                                       std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Batch batch;
  const MutexLock lock(mutex_);
  while (!stopped_ && !waiter.stopped) {
    if (cursor < store_.compacted()) {
      batch.expired = true;
      batch.oldest = store_.compacted();
      return batch;
    }
    for (auto it = store_.after(cursor);
         it != store_.history().end() && batch.changes.size() < kWatchBatch; ++it) {
      cursor = it->version;
      if ((waiter.resources >> it->resource & 1U) != 0) batch.changes.push_back(*it);
    }
    if (!batch.changes.empty() || std::chrono::steady_clock::now() >= deadline) return batch;
    waiter.changed.wait_until(mutex_, deadline);
  }
  return batch;
}

void Registry::Impl::add_waiter(Waiter& waiter) {
  const MutexLock lock(mutex_);
  waiters_.push_back(&waiter);
}

void Registry::Impl::remove_waiter(Waiter& waiter) {
  const MutexLock lock(mutex_);
  std::erase(waiters_, &waiter);
}

void Registry::Impl::stop_waiter(Waiter& waiter) {
  const MutexLock lock(mutex_);
  waiter.stopped = true;
  waiter.changed.notify_all();
}

bool Registry::Impl::is_stopped(const Waiter& waiter) const {
  const MutexLock lock(mutex_);
  return stopped_ || waiter.stopped;
}

void Registry::Impl::notify_locked(std::size_t resource) {
  for (auto* waiter : waiters_) {
    if ((waiter->resources >> resource & 1U) != 0) waiter->changed.notify_all();
  }
}

}  // namespace lpp::devcluster
