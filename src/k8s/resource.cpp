// SPDX-License-Identifier: Apache-2.0
#include "k8s/resource.h"

#include "base/strings.h"

namespace lpp::k8s {

std::string Resource::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

std::string collection_path(const Resource& resource, std::string_view ns) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/";
  path += resource.api_version();
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  path += '/';
  path += resource.plural;
  return path;
}

std::string object_path(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource) {
  std::string path = collection_path(resource, key.ns) + "/" + percent_encode(key.name);
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

}  // namespace lpp::k8s
