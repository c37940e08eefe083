// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/registry.h"

#include <algorithm>

#include "devcluster/apiserver/registry_impl.h"
#include "devcluster/apiserver/registry_watch.h"
#include "devcluster/apiserver/selectors.h"

namespace lpp::devcluster {

Registry::Registry() : Registry(Options{}) {}

Registry::Registry(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Registry::~Registry() = default;

Reply Registry::get(const ObjectRef& ref) const { return impl_->get(ref); }

ListReply Registry::list(std::string_view resource, const ListOptions& options) const {
  return impl_->list(resource, options);
}

Reply Registry::create(std::string_view resource, std::string_view ns, const Json& object,
                       const WriteOptions& options) {
  return impl_->create(resource, ns, object, options);
}

Reply Registry::update(const ObjectRef& ref, const Json& object, const WriteOptions& options) {
  return impl_->update(ref, object, options);
}

Reply Registry::patch(const ObjectRef& ref, PatchType type, const Json& patch,
                      const WriteOptions& options) {
  return impl_->patch(ref, type, patch, options);
}

Reply Registry::remove(const ObjectRef& ref, const DeleteOptions& options) {
  return impl_->remove(ref, options);
}

ListReply Registry::remove_collection(std::string_view resource, const ListOptions& selection,
                                      const DeleteOptions& options) {
  ListReply found = impl_->list(resource, selection);
  if (!found.ok()) return found;
  for (const auto& object : found.items) {
    const Reply reply =
        impl_->remove({std::string(resource), namespace_of(*object), name_of(*object)}, options);
    if (!reply.ok() && !reply.not_found()) {
      return ListReply{.code = reply.code, .status = reply.body};
    }
  }
  return found;
}

Reply Registry::bind_pod(std::string_view ns, std::string_view name, std::string_view node) {
  return impl_->bind_pod(ns, name, node);
}

WatchReply Registry::watch(const WatchOptions& options) const {
  return start_watch(*impl_, options);
}

ObjectPtr Registry::find(std::string_view resource, std::string_view ns,
                         std::string_view name) const {
  Reply reply = impl_->get({std::string(resource), std::string(ns), std::string(name)});
  return reply.ok() ? std::move(reply.body) : nullptr;
}

std::vector<ObjectPtr> Registry::all(std::string_view resource, std::string_view ns) const {
  const auto* info = find_resource(resource);
  if (info == nullptr) return {};
  return impl_->snapshot(resource_index(*info), ns);
}

Reply Registry::modify(const ObjectRef& ref, const std::function<bool(Json&)>& change,
                       const WriteOptions& options) {
  while (true) {
    Reply current = impl_->get(ref);
    if (!current.ok()) return current;
    Json next = *current.body;
    if (!change(next)) return current;
    next["metadata"]["resourceVersion"] = (*current.body)["metadata"]["resourceVersion"];
    Reply written = impl_->update(ref, next, options);
    if (written.reason() != "Conflict") return written;
  }
}

std::uint64_t Registry::resource_version() const { return impl_->version(); }
void Registry::compact() { impl_->compact(); }
void Registry::stop_watches() { impl_->stop_watches(); }

}  // namespace lpp::devcluster
