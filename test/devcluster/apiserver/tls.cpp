// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/tls.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

namespace lpp::devcluster {
namespace {

constexpr long kDay = 24L * 3600;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Bio = std::unique_ptr<BIO, Free>;

Error tls_error(const std::string& what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return Error{.code = ErrorCode::kInternal, .message = what + ": " + text.data()};
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// An unsigned certificate with a random serial number.
Certificate start_certificate(const char* name, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  std::array<unsigned char, 8> serial{};
  if (certificate == nullptr || RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1) {
    return nullptr;
  }
  std::uint64_t number = 0;
  for (const auto byte : serial) number = number << 8 | byte;
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), number >> 1);
  X509_set_version(certificate.get(), 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3650 * kDay);
  std::string common_name(name);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.data()),
                             static_cast<int>(common_name.size()), -1, 0);
  return X509_set_pubkey(certificate.get(), key) == 1 ? std::move(certificate) : nullptr;
}

std::string to_pem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(bio.get(), certificate) == 1 ? text_of(bio.get()) : std::string();
}

std::string to_pem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1
             ? text_of(bio.get())
             : std::string();
}

}  // namespace

Result<ServerCertificates> make_certificates() {
  const Key ca_key(EVP_EC_gen("P-256"));
  const Key key(EVP_EC_gen("P-256"));
  if (ca_key == nullptr || key == nullptr) return tls_error("generate a key");

  const auto ca = start_certificate("embedded-cluster-ca", ca_key.get());
  if (ca == nullptr) return tls_error("make the CA certificate");
  X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get()));
  if (!add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(ca.get(), ca.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(ca.get(), ca_key.get(), EVP_sha256()) == 0) {
    return tls_error("sign the CA certificate");
  }

  const auto server = start_certificate("embedded-apiserver", key.get());
  if (server == nullptr) return tls_error("make the server certificate");
  X509_set_issuer_name(server.get(), X509_get_subject_name(ca.get()));
  if (!add_extension(server.get(), ca.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(server.get(), ca.get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(server.get(), ca.get(), NID_ext_key_usage, "serverAuth") ||
      !add_extension(server.get(), ca.get(), NID_authority_key_identifier, "keyid") ||
      !add_extension(server.get(), ca.get(), NID_subject_alt_name,
                     "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,"
                     "DNS:kubernetes.default.svc,IP:127.0.0.1,IP:::1") ||
      X509_sign(server.get(), ca_key.get(), EVP_sha256()) == 0) {
    return tls_error("sign the server certificate");
  }
  ServerCertificates out{to_pem(ca.get()), to_pem(server.get()), to_pem(key.get())};
  if (out.ca_pem.empty() || out.certificate_pem.empty() || out.key_pem.empty()) {
    return tls_error("write the certificates");
  }
  return out;
}

}  // namespace lpp::devcluster
