// SPDX-License-Identifier: Apache-2.0
#include "agent/tls_socket.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "k8s/tls_context.h"

namespace lpp::agent {

namespace {

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;
using Key = std::unique_ptr<EVP_PKEY, FreePem>;

constexpr std::size_t kPiece = 16384;  // no TLS record holds more

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace

Result<std::shared_ptr<SSL_CTX>> make_server_tls(const std::string& certificate,
                                                 const std::string& key) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Error{.message = "TLS: " + k8s::take_tls_error()};
  SSL_CTX* const ctx = context.get();
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(ctx, 0);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const Bio chain = bio_of(certificate);
  const Certificate own(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(ctx, own.get()) != 1) {
    return invalid("tls.crt is not a certificate: " + k8s::take_tls_error());
  }
  while (const Certificate issuer{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)}) {
    SSL_CTX_add1_chain_cert(ctx, issuer.get());
  }
  ERR_clear_error();  // the end of the text
  const Key secret(PEM_read_bio_PrivateKey(bio_of(key).get(), nullptr, nullptr, nullptr));
  if (secret == nullptr || SSL_CTX_use_PrivateKey(ctx, secret.get()) != 1) {
    return invalid("tls.key is not the key of tls.crt: " + k8s::take_tls_error());
  }
  return context;
}

TlsSocket::TlsSocket(UniqueFd fd, const std::shared_ptr<SSL_CTX>& context)
    : fd_(std::move(fd)), ssl_(SSL_new(context.get())) {
  if (ssl_ == nullptr) return;
  SSL_set_fd(ssl_, fd_.get());
  SSL_set_accept_state(ssl_);
}

TlsSocket::~TlsSocket() { SSL_free(ssl_); }

TlsSocket::Step TlsSocket::step_of(int result) {
  const int error = SSL_get_error(ssl_, result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return Step::kWantRead;
  if (error == SSL_ERROR_WANT_WRITE) return Step::kWantWrite;
  return Step::kClosed;
}

TlsSocket::Step TlsSocket::accept() {
  if (ssl_ == nullptr) return Step::kClosed;
  ERR_clear_error();
  const int result = SSL_accept(ssl_);
  return result == 1 ? Step::kDone : step_of(result);
}

TlsSocket::Step TlsSocket::read(std::string& to, std::size_t most) {
  std::array<char, kPiece> piece;
  ERR_clear_error();
  const auto size = static_cast<int>(std::min(piece.size(), most));
  const int result = SSL_read(ssl_, piece.data(), size);
  if (result <= 0) return step_of(result);
  to.append(piece.data(), static_cast<std::size_t>(result));
  return Step::kDone;
}

TlsSocket::Step TlsSocket::write(std::string_view& from) {
  ERR_clear_error();
  const auto size = static_cast<int>(std::min(kPiece, from.size()));
  const int result = SSL_write(ssl_, from.data(), size);
  if (result <= 0) return step_of(result);
  from.remove_prefix(static_cast<std::size_t>(result));
  return Step::kDone;
}

void TlsSocket::close_writing() {
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
  ::shutdown(fd_.get(), SHUT_WR);
}

TlsSocket::Step TlsSocket::discard() {
  std::array<char, kPiece> piece;
  for (int i = 0; i < 16; ++i) {
    const auto got = ::recv(fd_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) continue;
    const bool blocks = got < 0 && (errno == EAGAIN || errno == EINTR);
    return blocks ? Step::kWantRead : Step::kClosed;
  }
  return Step::kWantRead;
}

}  // namespace lpp::agent
