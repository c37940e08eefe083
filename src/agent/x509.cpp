// SPDX-License-Identifier: Apache-2.0
#include "agent/x509.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>

#include "base/log.h"

namespace lpp::agent {

namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
  void operator()(BIGNUM* number) const { BN_free(number); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

constexpr std::chrono::minutes kSlowClocks{5};

Error openssl_error(std::string_view what) {
  std::array<char, 256> text{};
  if (const auto code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text.data(), text.size());
  }
  ERR_clear_error();
  return invalid(fmt::format("{}: {}", what, text.data()));
}

Owned<BIO> reader_of(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Owned<X509> read_certificate(const std::string& pem) {
  const auto bio = reader_of(pem);
  Owned<X509> certificate(bio == nullptr ? nullptr
                                         : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

/// No passphrase is asked for.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

Owned<EVP_PKEY> read_key(const std::string& pem) {
  const auto bio = reader_of(pem);
  Owned<EVP_PKEY> key(bio == nullptr
                          ? nullptr
                          : PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return key;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<KeyPair> to_pem(X509* certificate, EVP_PKEY* key) {
  const Owned<BIO> one(BIO_new(BIO_s_mem()));
  const Owned<BIO> other(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_X509(one.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(other.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_error("write a certificate");
  }
  return KeyPair{.certificate = text_of(one.get()), .key = text_of(other.get())};
}

bool add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// 127 random bits: nobody counts them.
bool set_serial(X509* certificate) {
  const Owned<BIGNUM> number(BN_new());
  return number != nullptr &&
         BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_times(X509* certificate, WallTime now, std::chrono::hours life) {
  const auto seconds = [](WallTime time) { return std::chrono::system_clock::to_time_t(time); };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(now - kSlowClocks)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(now + life)) != nullptr;
}

bool set_name(X509* certificate, const std::string& name) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                    0) == 1;
}

/// Everything but issuer, extensions and signature.
Owned<X509> begin_certificate(EVP_PKEY* key, const std::string& name, WallTime now,
                              std::chrono::hours life) {
  Owned<X509> certificate(X509_new());
  if (certificate == nullptr || key == nullptr || X509_set_version(certificate.get(), 2) != 1 ||
      !set_serial(certificate.get()) || !set_times(certificate.get(), now, life) ||
      !set_name(certificate.get(), name) || X509_set_pubkey(certificate.get(), key) != 1) {
    return nullptr;
  }
  return certificate;
}

bool is_address(const std::string& name) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

WallTime to_wall_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> dns;
  std::vector<std::string> addresses;
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      dns.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                       static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      std::array<char, INET6_ADDRSTRLEN> text{};
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      if (inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text.data(), text.size()) !=
          nullptr) {
        addresses.emplace_back(text.data());
      }
    }
  }
  dns.insert(dns.end(), addresses.begin(), addresses.end());
  return dns;
}

}  // namespace

Result<KeyPair> make_authority(const std::string& name, WallTime now, std::chrono::hours life) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const auto certificate = begin_certificate(key.get(), name, now, life);
  X509* const made = certificate.get();
  if (made == nullptr || X509_set_issuer_name(made, X509_get_subject_name(made)) != 1 ||
      !add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(made, made, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(made, made, NID_subject_key_identifier, "hash") ||
      X509_sign(made, key.get(), EVP_sha256()) == 0) {
    return openssl_error("make an authority");
  }
  return to_pem(made, key.get());
}

Result<KeyPair> issue_server(const KeyPair& authority, const std::vector<std::string>& names,
                             WallTime now, std::chrono::hours life) {
  const auto issuer = read_certificate(authority.certificate);
  const auto signer = read_key(authority.key);
  if (issuer == nullptr || signer == nullptr || names.empty()) {
    return invalid("issue a certificate: the authority cannot be used");
  }
  std::string alt_names;
  for (const auto& name : names) {
    alt_names += (alt_names.empty() ? "" : ",") + std::string(is_address(name) ? "IP:" : "DNS:");
    alt_names += name;
  }
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  // A common name is 64 characters at most, and nobody reads it.
  const auto certificate = begin_certificate(key.get(), "local-path-provisioner", now, life);
  X509* const made = certificate.get();
  if (made == nullptr || X509_set_issuer_name(made, X509_get_subject_name(issuer.get())) != 1 ||
      !add_extension(made, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(made, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(made, issuer.get(), NID_ext_key_usage, "serverAuth") ||
      !add_extension(made, issuer.get(), NID_authority_key_identifier, "keyid") ||
      !add_extension(made, issuer.get(), NID_subject_alt_name, alt_names) ||
      X509_sign(made, signer.get(), EVP_sha256()) == 0) {
    return openssl_error("issue a certificate");
  }
  return to_pem(made, key.get());
}

Result<CertificateFacts> inspect(const KeyPair& pair) {
  const auto certificate = read_certificate(pair.certificate);
  if (certificate == nullptr) return invalid("not a certificate");
  const auto key = read_key(pair.key);
  const bool fits = key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) return invalid("not the key of the certificate");
  return CertificateFacts{.not_before = to_wall_time(X509_get0_notBefore(certificate.get())),
                          .not_after = to_wall_time(X509_get0_notAfter(certificate.get())),
                          .names = names_of(certificate.get())};
}

bool is_signed_by(const std::string& certificate, const std::string& authority) {
  const auto one = read_certificate(certificate);
  const auto issuer = read_certificate(authority);
  if (one == nullptr || issuer == nullptr) return false;
  const bool is = X509_check_issued(issuer.get(), one.get()) == X509_V_OK &&
                  X509_verify(one.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return is;
}

}  // namespace lpp::agent
