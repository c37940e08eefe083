// SPDX-License-Identifier: Apache-2.0
#include "k8s/rest_config.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/strings.h"
#include "base/whole_number.h"
#include "k8s/proxy.h"
#include "k8s/tls_context.h"

namespace lpp::k8s {

namespace {

std::string env_or_empty(const RestConfigSources& sources, const std::string& name) {
  if (!sources.getenv) return {};
  return sources.getenv(name).value_or("");
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// The existing files of KUBECONFIG; the reasons for the others are added to `tried`.
std::vector<std::string> kubeconfig_list(const std::string& list, std::string& tried) {
  std::vector<std::string> files;
  for (const auto entry : split(list, ':')) {
    std::string file(entry);
    if (file.empty() || std::find(files.begin(), files.end(), file) != files.end()) continue;
    if (file_exists(file)) {
      files.push_back(std::move(file));
    } else {
      tried += fmt::format("; KUBECONFIG: {} does not exist", file);
    }
  }
  return files;
}

std::string home_kubeconfig(const RestConfigSources& sources, std::string& tried) {
  const std::string home = env_or_empty(sources, "HOME");
  if (home.empty()) {
    tried += "; HOME is not set";
    return {};
  }
  std::string file = home + "/.kube/config";
  if (file_exists(file)) return file;
  tried += "; " + file + " does not exist";
  return {};
}

/// The kubeconfig files that serve together, in front of in-cluster.
std::vector<std::string> kubeconfig_files(const RestConfigSources& sources, std::string& tried) {
  if (!sources.kubeconfig_flag.empty()) return {sources.kubeconfig_flag};
  tried = "--kubeconfig is not given";
  const std::string list = env_or_empty(sources, "KUBECONFIG");
  if (list.empty()) tried += "; KUBECONFIG is not set";
  auto files = kubeconfig_list(list, tried);
  if (!sources.as_kubectl) {
    if (files.size() > 1) files.resize(1);
  } else if (list.empty()) {
    if (std::string file = home_kubeconfig(sources, tried); !file.empty()) return {file};
  }
  return files;
}

Result<RestConfig> find_rest_config(const RestConfigSources& sources) {
  std::string tried;
  if (const auto files = kubeconfig_files(sources, tried); !files.empty()) {
    return load_kubeconfigs(files, sources.choice);
  }
  if (sources.choice.empty()) {  // only a kubeconfig has entries to choose
    auto in_cluster = load_in_cluster(sources);
    if (in_cluster.ok()) return in_cluster;
    tried += "; " + in_cluster.error().message;
  }
  if (!sources.as_kubectl) {
    if (const std::string file = home_kubeconfig(sources, tried); !file.empty()) {
      return load_kubeconfigs({file}, sources.choice);
    }
  }
  return invalid("no configuration of a Kubernetes API server was found: " + tried);
}

}  // namespace

Result<RestConfig> load_in_cluster(const RestConfigSources& sources) {
  RestConfig config;
  config.source = "in-cluster";
  config.host = env_or_empty(sources, "KUBERNETES_SERVICE_HOST");
  const std::string port = env_or_empty(sources, "KUBERNETES_SERVICE_PORT");
  if (config.host.empty() || port.empty()) {
    return invalid(
        "in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set");
  }
  config.port = whole_number<int>(port).value_or(0);
  if (config.port < 1 || config.port > 65535) {
    return invalid("in-cluster: KUBERNETES_SERVICE_PORT must be a number from 1 to 65535, not " +
                   log::quoted(port));
  }
  if (config.host.starts_with('[') && config.host.ends_with(']')) {
    config.host = config.host.substr(1, config.host.size() - 2);
  }
  config.token_file = sources.service_account_dir + "/token";
  const auto token = read_small_file(config.token_file);
  if (!token.ok()) return invalid("in-cluster: token: " + token.error().message);
  if (trim(*token).empty()) return invalid("in-cluster: token: " + config.token_file + " is empty");
  config.ca.file = sources.service_account_dir + "/ca.crt";
  if (const auto ca = read_small_file(config.ca.file); !ca.ok()) {
    log::warn("in-cluster: {}; the system's certificate authorities are used instead",
              ca.error().message);
    config.ca.file.clear();
  }
  config.default_namespace = env_or_empty(sources, "POD_NAMESPACE");
  if (config.default_namespace.empty()) {
    const auto ns = read_small_file(sources.service_account_dir + "/namespace");
    if (ns.ok()) config.default_namespace = trim(*ns);
  }
  if (config.default_namespace.empty()) config.default_namespace = "default";
  return config;
}

KubeconfigNames kubeconfig_names(const RestConfigSources& sources) {
  std::string tried;
  return read_kubeconfig_names(kubeconfig_files(sources, tried));
}

Result<RestConfig> load_rest_config(const RestConfigSources& sources) {
  auto config = find_rest_config(sources);
  if (config.ok() && !sources.impersonate.user.empty()) config->impersonate = sources.impersonate;
  if (!config.ok() || !config->proxy_url.empty() || !sources.getenv) return config;
  config->proxy_url =
      proxy_from_environment(config->https, config->host, config->port, sources.getenv);
  if (config->proxy_url.empty()) return config;
  if (const auto proxy = parse_proxy_url(config->proxy_url); !proxy.ok()) {
    return proxy.error().wrap(config->https ? "HTTPS_PROXY" : "HTTP_PROXY");
  }
  return config;
}

}  // namespace lpp::k8s
