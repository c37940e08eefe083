// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "devcluster/apiserver/faults.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/request_log.h"

/// The embedded cluster's API server: the Kubernetes API over TLS, on top of a Registry.
/// It is for trying and testing: everything is in memory, a ServiceAccount may do what the
/// roles in the registry grant it, every other known token may do everything.
namespace lpp::devcluster {

/// The whole log of a container so far, oldest line first; empty when the pod or the container has
/// not started. Called on connection threads.
using LogSource = std::function<std::optional<std::string>(
    const std::string& ns, const std::string& pod, const std::string& container)>;

/// What the kubelet of a node answers to GET of a path, such as "stats/summary"; empty for 404.
/// Called on connection threads.
using KubeletSource =
    std::function<std::optional<std::string>(const std::string& node, const std::string& path)>;

/// What a pod, named "<name>:<port>", serves at a path such as "usage"; empty for 404. Called on
/// connection threads.
using PodPageSource = std::function<std::optional<std::string>(
    const std::string& ns, const std::string& pod, const std::string& path)>;

class Rbac;

/// Thread-safe. The Registry must outlive it.
class ApiServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;  ///< 0: any free one
    std::string git_version = "v1.36.0";
    std::chrono::milliseconds bookmark_period{60'000};
    /// Of watches that ask for none.
    std::chrono::seconds watch_timeout{1800};
    /// From the deletion of a namespace to that of its objects.
    std::chrono::milliseconds namespace_delay{500};
    std::size_t body_limit = std::size_t{3} * 1024 * 1024;
    /// Answers in protobuf where a client prefers it; else JSON is all there is.
    bool protobuf = true;
  };

  explicit ApiServer(Registry& registry);
  ApiServer(Registry& registry, Options options);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  /// Ready for requests when it returns. The whole process ignores SIGPIPE from then on.
  Result<void> start();
  /// Ends watches and connections, joins all threads.
  void stop();

  int port() const;
  std::string url() const;  ///< "https://127.0.0.1:12345"
  const std::string& ca_pem() const;

  const std::string& admin_token() const;
  std::string mint_token(const std::string& user);
  std::string mint_service_account_token(const std::string& ns, const std::string& name);
  void revoke_token(const std::string& token);

  /// YAML with the CA and the token inline. `token` empty: the administrator's.
  std::string kubeconfig(const std::string& token = {}, const std::string& ns = "default") const;
  /// Readable by the owner only.
  Result<void> write_kubeconfig(const std::string& path, const std::string& token = {},
                                const std::string& ns = "default") const;

  /// Where pods/log comes from; without one every log is empty.
  void set_log_source(LogSource source);
  /// Where nodes/proxy leads to; without one every path is unknown.
  void set_kubelets(KubeletSource source);
  /// Where pods/proxy leads to; without one every path is unknown.
  void set_pod_pages(PodPageSource source);

  FaultRules& faults();
  RequestLog& requests();
  const Rbac& rbac() const;
  /// Resets every connection there is, as a network failure would; new ones are served.
  void cut_connections();
  std::size_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lpp::devcluster
