// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/server.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "devcluster/apiserver/api_handler.h"
#include "devcluster/apiserver/namespace_sweeper.h"
#include "devcluster/apiserver/rbac.h"
#include "devcluster/json_names.h"
#include "harness/http_server.h"
#include "harness/test_ca.h"
#include "k8s/base64.h"

namespace lpp::devcluster {

class ApiServer::Impl {
 public:
  Impl(Registry& registry, Options options)
      : options_(std::move(options)),
        admin_token_(tokens_.mint("kubernetes-admin")),
        sweeper_(registry, options_.namespace_delay),
        rbac_(registry),
        handler_(registry, options_, faults_, requests_, tokens_, rbac_, sweeper_),
        http_(
            {.address = options_.address,
             .port = options_.port,
             .certificate = ca_.server({"DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default",
                                        "DNS:kubernetes.default.svc", "IP:127.0.0.1", "IP:::1"}),
             .body_limit = options_.body_limit},
            [this](Exchange& exchange) {
              handler_.handle(exchange);
              return true;
            }) {}

  std::string url() const {
    const bool v6 = options_.address.find(':') != std::string::npos;
    const std::string host = options_.address == "0.0.0.0" ? "127.0.0.1"
                             : options_.address == "::"    ? "[::1]"
                             : v6                          ? "[" + options_.address + "]"
                                                           : options_.address;
    return "https://" + host + ":" + std::to_string(http_.port());
  }

  // Constant after start(). The handler uses what is above it, the HTTP server uses the handler.
  const Options options_;
  FaultRules faults_;
  RequestLog requests_;
  Tokens tokens_;
  const std::string admin_token_;
  NamespaceSweeper sweeper_;
  Rbac rbac_;
  ApiHandler handler_;
  const testing::TestCa ca_{"embedded-cluster-ca"};
  testing::HttpServer http_;
};

ApiServer::ApiServer(Registry& registry) : ApiServer(registry, Options{}) {}
ApiServer::ApiServer(Registry& registry, Options options)
    : impl_(std::make_unique<Impl>(registry, std::move(options))) {}
ApiServer::~ApiServer() { stop(); }

Result<void> ApiServer::start() {
  LPP_RETURN_IF_ERROR(impl_->http_.start(), "API server");
  return {};
}
void ApiServer::stop() {
  impl_->http_.refuse_more();
  impl_->handler_.stop_watches();
  impl_->http_.stop();
  impl_->sweeper_.stop();
}
int ApiServer::port() const { return impl_->http_.port(); }
std::string ApiServer::url() const { return impl_->url(); }
const std::string& ApiServer::ca_pem() const { return impl_->ca_.pem(); }
const std::string& ApiServer::admin_token() const { return impl_->admin_token_; }
std::string ApiServer::mint_token(const std::string& user) { return impl_->tokens_.mint(user); }
std::string ApiServer::mint_service_account_token(const std::string& ns, const std::string& name) {
  return mint_token("system:serviceaccount:" + ns + ":" + name);
}
void ApiServer::revoke_token(const std::string& token) { impl_->tokens_.revoke(token); }
void ApiServer::set_kubelets(KubeletSource source) {
  impl_->handler_.set_kubelets(std::move(source));
}

void ApiServer::set_pod_pages(PodPageSource source) {
  impl_->handler_.set_pod_pages(std::move(source));
}

void ApiServer::set_log_source(LogSource source) {
  impl_->handler_.set_log_source(std::move(source));
}
FaultRules& ApiServer::faults() { return impl_->faults_; }
RequestLog& ApiServer::requests() { return impl_->requests_; }
const Rbac& ApiServer::rbac() const { return impl_->rbac_; }
void ApiServer::cut_connections() { impl_->http_.cut_all(); }
std::size_t ApiServer::connections() const { return impl_->http_.connections(); }

std::string ApiServer::kubeconfig(const std::string& token, const std::string& ns) const {
  return "apiVersion: v1\n"
         "kind: Config\n"
         "clusters:\n"
         "- name: embedded\n"
         "  cluster:\n"
         "    server: " +
         url() +
         "\n"
         "    certificate-authority-data: " +
         k8s::base64_encode(ca_pem()) +
         "\n"
         "users:\n"
         "- name: embedded\n"
         "  user:\n"
         "    token: " +
         (token.empty() ? admin_token() : token) +
         "\n"
         "contexts:\n"
         "- name: embedded\n"
         "  context:\n"
         "    cluster: embedded\n"
         "    user: embedded\n"
         "    namespace: " +
         ns +
         "\n"
         "current-context: embedded\n";
}

Result<void> ApiServer::write_kubeconfig(const std::string& path, const std::string& token,
                                         const std::string& ns) const {
  const auto failed = [&path] {
    return Error{.code = ErrorCode::kInternal,
                 .message = "write " + path + ": " + std::generic_category().message(errno)};
  };
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return failed();
  const std::string text = kubeconfig(token, ns);
  const auto written = ::write(fd, text.data(), text.size());
  if (::close(fd) != 0 || written != static_cast<ssize_t>(text.size())) return failed();
  return {};
}

}  // namespace lpp::devcluster
