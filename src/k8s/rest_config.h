// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lpp::k8s {

/// Bytes given inline or by a file that is read again when it changes.
struct FileOrData {
  std::string file{};
  std::string data{};
  bool empty() const { return file.empty() && data.empty(); }
};

/// An exec credential plugin (rule C1.7).
struct ExecPlugin {
  std::string api_version{};
  std::string command{};
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};
  std::string install_hint{};
  bool provide_cluster_info = false;
  std::string interactive_mode{};
};

struct Impersonation {
  std::string user{};
  std::string uid{};
  std::vector<std::string> groups{};
  std::vector<std::pair<std::string, std::string>> extra{};
};

/// Everything needed to reach and authenticate to one API server. A plain value.
struct RestConfig {
  // Server, parsed: https://host:port/base_path
  bool https = true;
  std::string host{};  // without brackets, also for IPv6
  int port = 443;
  std::string base_path{};  // "" or "/prefix" without a trailing slash
  std::string
      proxy_url{};  // http://[user:pass@]host:port or "" (from proxy-url or the environment)

  // TLS
  FileOrData ca{};
  FileOrData client_certificate{};
  FileOrData client_key{};
  std::string tls_server_name{};
  bool insecure_skip_tls_verify = false;

  // Credentials
  std::string token{};
  std::string token_file{};  // wins over token once readable
  std::string username{};
  std::string password{};
  std::optional<ExecPlugin> exec{};
  Impersonation impersonate{};

  // The namespace of the context or service account, "" if unknown.
  std::string default_namespace{};
  std::string source{};  // for the log: "in-cluster" or "kubeconfig <file>, context <name>"
  std::string user_agent{};
};

/// What is chosen among the entries of a kubeconfig; "" = as its current-context says.
struct KubeconfigChoice {
  std::string context{};
  std::string cluster{};
  std::string user{};
  bool empty() const { return context.empty() && cluster.empty() && user.empty(); }
};

/// Where configuration may come from; the environment is passed in so that tests need none.
struct RestConfigSources {
  std::string kubeconfig_flag{};
  KubeconfigChoice choice{};
  Impersonation impersonate{};  // with a user: instead of the one that the kubeconfig names
  /// What kubectl reads: all files of KUBECONFIG as one or else $HOME/.kube/config, then
  /// in-cluster. Otherwise the first existing file of KUBECONFIG, in-cluster, $HOME/.kube/config
  /// (rule B1.3).
  bool as_kubectl = false;
  std::function<std::optional<std::string>(const std::string&)> getenv{};
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// The flag's file, else what as_kubectl says. The error names everything that was tried and why it
/// did not serve.
Result<RestConfig> load_rest_config(const RestConfigSources& sources);

/// One kubeconfig file; `context` "" means current-context. Errors name file and field.
Result<RestConfig> load_kubeconfig(const std::string& file, std::string_view context = {});

/// Several files as one: of entries with one name the first counts, and the first current-context.
/// Paths in a file are relative to that file. Errors name file and field.
Result<RestConfig> load_kubeconfigs(const std::vector<std::string>& files,
                                    const KubeconfigChoice& choice);

/// The names of a kubeconfig's entries, for shells; nothing of what cannot be read.
struct KubeconfigNames {
  std::vector<std::string> contexts{};
  std::vector<std::string> clusters{};
  std::vector<std::string> users{};
};
KubeconfigNames kubeconfig_names(const RestConfigSources& sources);
KubeconfigNames read_kubeconfig_names(const std::vector<std::string>& files);

/// The service account's files and KUBERNETES_SERVICE_HOST/PORT.
Result<RestConfig> load_in_cluster(const RestConfigSources& sources);

}  // namespace lpp::k8s
