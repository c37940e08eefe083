// SPDX-License-Identifier: Apache-2.0
#include "harness/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace lpp::testing {

namespace {

struct Delete {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Delete>;
using Certificate = std::unique_ptr<X509, Delete>;
using Bio = std::unique_ptr<BIO, Delete>;

Error tls_error(const char* what) {
  std::array<char, 256> text{};
  const auto code = ERR_get_error();
  if (code != 0) {
    ERR_error_string_n(code, text.data(), text.size());
  } else {
    std::strncpy(text.data(), "connection closed", text.size() - 1);
  }
  ERR_clear_error();
  return Error{.code = ErrorCode::kUnavailable, .message = std::string(what) + ": " + text.data()};
}

Error system_error(const char* what) {
  return Error{.code = ErrorCode::kUnavailable,
               .message = std::string(what) + ": " + std::generic_category().message(errno)};
}

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<void> trust(SSL_CTX& context, const std::string& ca_pem) {
  const Bio text = bio_of(ca_pem);
  X509_STORE* store = SSL_CTX_get_cert_store(&context);
  int count = 0;
  while (const Certificate ca{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store, ca.get());
    ++count;
  }
  ERR_clear_error();  // the end of the text is reported as an error
  if (count == 0) return invalid("the certificate authority holds no certificate");
  return {};
}

/// Of what the client offers.
int choose_http11(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                  const unsigned char* in, unsigned int in_size, void* /*argument*/) {
  static constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof(kHttp11), in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<SslContext> server_context(const TestCertificate& own, const std::string& client_ca) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  const Bio certificate_text = bio_of(own.certificate);
  const Bio key_text = bio_of(own.key);
  const Certificate certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (context == nullptr || certificate == nullptr || key == nullptr ||
      SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return tls_error("server certificate");
  }
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_http11, nullptr);
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (!client_ca.empty()) {
    LPP_RETURN_IF_ERROR(trust(*context, client_ca), "clients");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

Result<SslContext> client_context(const std::string& ca_pem) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return tls_error("client context");
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (ca_pem.empty()) return context;
  LPP_RETURN_IF_ERROR(trust(*context, ca_pem), "server");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

TlsStream::TlsStream(UniqueFd socket, SSL_CTX* context)
    : socket_(std::move(socket)), ssl_(context == nullptr ? nullptr : SSL_new(context)) {
  const int on = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (ssl_ != nullptr) SSL_set_fd(ssl_.get(), fd());
}

Result<UniqueFd> TlsStream::dial(const std::string& host, int port) {
  const std::string address = host == "localhost" ? "127.0.0.1" : host;
  sockaddr_storage storage{};
  socklen_t size = 0;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    size = sizeof *v6;
  } else {
    return invalid("not a numeric address: " + host);
  }
  UniqueFd socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return system_error("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0) {
    return system_error("connect");
  }
  return socket;
}

Result<void> TlsStream::accept() {
  if (ssl_ == nullptr) return {};
  ERR_clear_error();
  if (SSL_accept(ssl_.get()) != 1) return tls_error("TLS accept");
  return {};
}

Result<void> TlsStream::connect(const std::string& server_name) {
  ERR_clear_error();
  std::array<unsigned char, 16> ignored{};
  const bool is_address = ::inet_pton(AF_INET, server_name.c_str(), ignored.data()) == 1 ||
                          ::inet_pton(AF_INET6, server_name.c_str(), ignored.data()) == 1;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), server_name.c_str());
  } else {
    SSL_set1_host(ssl_.get(), server_name.c_str());
    std::string name =
        server_name;  // what the macro SSL_set_tlsext_host_name does, without its cast
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  }
  if (SSL_connect(ssl_.get()) != 1) return tls_error("TLS connect");
  return {};
}

Result<std::size_t> TlsStream::read(char* buffer, std::size_t size) {
  if (ssl_ == nullptr) {
    const auto got = ::recv(fd(), buffer, size, 0);
    if (got < 0) return system_error("read");
    return static_cast<std::size_t>(got);
  }
  ERR_clear_error();
  std::size_t done = 0;
  if (SSL_read_ex(ssl_.get(), buffer, size, &done) == 1) return done;
  if (SSL_get_error(ssl_.get(), 0) == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
  return tls_error("read");
}

Result<void> TlsStream::write(std::string_view data) {
  if (ssl_ == nullptr) {
    while (!data.empty()) {
      const auto sent = ::send(fd(), data.data(), data.size(), MSG_NOSIGNAL);
      if (sent < 0) return system_error("write");
      data.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }
  ERR_clear_error();
  if (data.empty()) return {};
  std::size_t done = 0;
  if (SSL_write_ex(ssl_.get(), data.data(), data.size(), &done) != 1) return tls_error("write");
  return {};
}

bool TlsStream::has_pending() const { return ssl_ != nullptr && SSL_has_pending(ssl_.get()) == 1; }

bool TlsStream::peer_gone(std::chrono::milliseconds wait) const {
  pollfd state{.fd = fd(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&state, 1, static_cast<int>(wait.count())) > 0;
}

std::string TlsStream::peer_serial() const {
  const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()));
  if (certificate == nullptr) return "";
  return std::to_string(ASN1_INTEGER_get(X509_get0_serialNumber(certificate.get())));
}

std::string TlsStream::peer_name() const {
  const Certificate certificate(ssl_ ? SSL_get1_peer_certificate(ssl_.get()) : nullptr);
  if (certificate == nullptr) return "";
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

std::string TlsStream::server_name() const {
  const char* name = ssl_ ? SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name) : nullptr;
  return name == nullptr ? "" : name;
}

void TlsStream::shut_down_socket(int how) { ::shutdown(fd(), how); }

void TlsStream::reset() {
  // Dissolving the association resets the connection but keeps the descriptor, which other threads
  // may still shut down.
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  static_cast<void>(::connect(fd(), &nobody, sizeof nobody));
}

void TlsStream::say_goodbye() {
  if (ssl_ != nullptr) SSL_shutdown(ssl_.get());
}

}  // namespace lpp::testing
