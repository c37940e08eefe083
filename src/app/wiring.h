// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "app/options.h"
#include "base/clock.h"
#include "config/text_source.h"
#include "k8s/informer.h"
#include "k8s/leader_elector.h"
#include "k8s/rest_config.h"

namespace lpp::app {

/// "<hostname>_<random UUID>": new for each process.
std::string make_identity();

/// How to reach the API server: --kubeconfig, $KUBECONFIG, the pod's ServiceAccount.
Result<k8s::RestConfig> rest_config(const Options& options);

k8s::LeaderElectorOptions elector_options(const Options& options, const std::string& identity);

/// What arrives and is not used is dropped, so that memory does not grow with other people's
/// objects: volumes of other provisioners are not kept at all, of those made by hand only where
/// their directory is, of claims that are bound or not ours only what ties them to a volume, and of
/// other provisioners' classes only whose they are.
k8s::Informer<k8s::PersistentVolume>::Trim trim_volumes(provisioner::ServedNames names);
k8s::Informer<k8s::PersistentVolumeClaim>::Trim trim_claims(provisioner::ServedNames names);
bool trim_node(k8s::Node& node);
bool trim_pod(k8s::Pod& pod);
k8s::Informer<k8s::StorageClass>::Trim trim_classes(provisioner::ServedNames names);

/// Where config.json comes from: --config as a file or as text, else the ConfigMap. `stop` ends the
/// wait for the first answer of the API server.
std::unique_ptr<config::TextSource> config_source(const Options& options,
                                                  k8s::Informer<k8s::ConfigMap>& config_map,
                                                  Clock& clock, const std::stop_token& stop);

/// The file helperPod.yaml is read from: --helper-pod-file, else the one in CONFIG_MOUNT_PATH if
/// there is one; "" = the ConfigMap.
std::string template_file(const Options& options);

/// Where helperPod.yaml comes from.
std::unique_ptr<config::TextSource> template_source(const Options& options,
                                                    k8s::Informer<k8s::ConfigMap>& config_map,
                                                    Clock& clock, const std::stop_token& stop);

/// Whether one of the two texts comes from the ConfigMap itself, so that it has to be watched.
bool uses_config_map(const Options& options);

}  // namespace lpp::app
