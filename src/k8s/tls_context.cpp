// SPDX-License-Identifier: Apache-2.0
#include "k8s/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/log.h"

namespace lpp::k8s {

namespace {

constexpr std::chrono::seconds kRecheck{10};
constexpr std::size_t kMaxFile = std::size_t{4} << 20U;

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
using BioPtr = std::unique_ptr<BIO, Deleter<BIO, BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE, X509_STORE_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;

BioPtr memory_bio(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// All certificates of a PEM text; other PEM blocks are skipped.
std::vector<X509Ptr> read_certificates(const std::string& pem) {
  std::vector<X509Ptr> certificates;
  const BioPtr bio = memory_bio(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  ERR_clear_error();  // the end of the text is reported as an error
  return certificates;
}

/// Never asks at a terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

bool is_ip(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

int verify_error_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

/// Runs for each certificate of a chain; remembers the first reason against it.
int on_verify(int ok, X509_STORE_CTX* store) {
  if (ok == 1) return 1;
  const auto* ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* text =
      static_cast<std::string*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), verify_error_index()));
  if (text != nullptr && text->empty()) {
    *text = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  }
  return 0;
}

}  // namespace

struct TlsContext::Parts {
  StorePtr trusted;
  std::vector<X509Ptr> chain;  // the client's own certificate first
  KeyPtr key;
};

Result<std::shared_ptr<const TlsContext>> TlsContext::create(Input input) {
  ERR_clear_error();
  auto parts = std::make_shared<Parts>();
  parts->trusted.reset(X509_STORE_new());
  if (input.ca.empty()) {
    X509_STORE_set_default_paths(parts->trusted.get());
  } else {
    const auto certificates = read_certificates(input.ca);
    if (certificates.empty()) {
      return invalid(fmt::format("{}: there is no PEM certificate in it", input.ca_source));
    }
    for (const auto& certificate : certificates) {
      X509_STORE_add_cert(parts->trusted.get(), certificate.get());
    }
  }
  if (!input.client.empty()) {
    parts->chain = read_certificates(input.client.certificate);
    if (parts->chain.empty()) {
      return invalid(fmt::format("{}: there is no PEM certificate in the client certificate",
                                 input.client_source));
    }
    const BioPtr bio = memory_bio(input.client.key);
    parts->key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
    if (parts->key == nullptr) {
      return invalid(
          fmt::format("{}: the client key cannot be read (PEM without a pass phrase): {}",
                      input.client_source, take_tls_error()));
    }
    if (X509_check_private_key(parts->chain.front().get(), parts->key.get()) != 1) {
      ERR_clear_error();
      return invalid(fmt::format("{}: the client key does not belong to the client certificate",
                                 input.client_source));
    }
  }
  ERR_clear_error();
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(input), std::move(parts)));
}

Result<void> TlsContext::configure(ssl_ctx_st* ctx, std::string* verify_error) const {
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  // Most connections wait most of the time, and their two buffers are 33 KiB.
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(ctx, 1);  // a record in one system call instead of two
  SSL_CTX_set_ex_data(ctx, verify_error_index(), verify_error);
  if (!input_.insecure) {
    SSL_CTX_set1_cert_store(ctx, parts_->trusted.get());
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
    // The name is checked in the handshake, by OpenSSL. As in Go the subject's common name does not
    // count, only the alternative names do.
    X509_VERIFY_PARAM* param = SSL_CTX_get0_param(ctx);
    // As in Go, whatever is in the bundle is trusted, an intermediate authority too.
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_hostflags(
        param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    const std::string& name = input_.server_name;
    const int set = is_ip(name) ? X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str())
                                : X509_VERIFY_PARAM_set1_host(param, name.c_str(), name.size());
    if (set != 1) return invalid("the server name cannot be used: " + log::quoted(name));
  }
  if (parts_->key == nullptr) return {};
  if (SSL_CTX_use_certificate(ctx, parts_->chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(ctx, parts_->key.get()) != 1) {
    return invalid(fmt::format("{}: {}", input_.client_source, take_tls_error()));
  }
  for (std::size_t i = 1; i < parts_->chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(ctx, parts_->chain[i].get());
  }
  return {};
}

TlsProvider::TlsProvider(const RestConfig& config, Clock& clock)
    : ca_(config.ca, clock),
      certificate_(config.client_certificate, clock),
      key_(config.client_key, clock),
      server_name_(config.tls_server_name.empty() ? config.host : config.tls_server_name),
      insecure_(config.insecure_skip_tls_verify),
      clock_(clock) {}

Result<std::string> TlsProvider::Source::read() const {
  if (!data.empty() || file.path().empty()) return data;
  return file.read();
}

Result<TlsContext::Input> TlsProvider::read_files() const {
  TlsContext::Input input{.server_name = server_name_, .insecure = insecure_};
  while (input.server_name.ends_with('.')) input.server_name.pop_back();
  if (!insecure_) {
    LPP_ASSIGN_OR_RETURN(input.ca, ca_.read(), "certificate authority");
    input.ca_source = ca_.file.path().empty() ? "certificate-authority-data" : ca_.file.path();
    if (input.ca.empty() && !ca_.file.path().empty()) {
      return invalid(ca_.file.path() + " is empty");
    };
  }
  LPP_ASSIGN_OR_RETURN(input.client.certificate, certificate_.read(), "client certificate");
  LPP_ASSIGN_OR_RETURN(input.client.key, key_.read(), "client key");
  const std::string& certificate = certificate_.file.path();
  input.client_source = certificate.empty() ? "client-certificate-data" : certificate;
  return input;
}

Result<std::shared_ptr<const TlsContext>> TlsProvider::current(
    const ClientCertificate& exec_client) {
  {
    MutexLock lock(mutex_);
    if (current_ != nullptr && exec_client == exec_client_ && clock_.now() < next_check_) {
      return current_;
    }
  }
  auto input = read_files();
  if (input.ok() && !exec_client.empty()) {
    input->client = exec_client;
    input->client_source = "exec plugin";
  }
  std::shared_ptr<const TlsContext> last;
  {
    MutexLock lock(mutex_);
    next_check_ = clock_.now() + kRecheck;
    exec_client_ = exec_client;  // even if it cannot be used: not to be tried for every call
    last = current_;
  }
  if (input.ok() && last != nullptr && last->input() == *input) return last;
  auto created = input.ok() ? TlsContext::create(*std::move(input)) : std::move(input).error();
  if (!created.ok()) {
    if (last == nullptr) return created;
    // Half of a rotation, perhaps: the last good state serves until the next look.
    log::warn("TLS files cannot be used, keeping what was read before: {}",
              created.error().message);
    return last;
  }
  MutexLock lock(mutex_);
  current_ = *created;
  return created;
}

void TlsProvider::recheck_now() {
  MutexLock lock(mutex_);
  next_check_ = TimePoint::min();
}

std::string take_tls_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return {};
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "OpenSSL error " + std::to_string(code);
}

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return invalid(path + ": " + std::generic_category().message(errno));
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kMaxFile &&
         (file.read(buffer.data(), buffer.size()) || file.gcount() > 0)) {
    text.append(buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || (!file.eof() && text.size() <= kMaxFile)) {
    return invalid(path + ": cannot be read (is it a directory?)");
  }
  if (text.size() > kMaxFile) return invalid(path + ": is larger than 4 MiB");
  return text;
}

}  // namespace lpp::k8s
