// SPDX-License-Identifier: Apache-2.0
#include "harness/test_ca.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstdlib>

namespace lpp::testing {

namespace {

std::string to_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

std::string pem_of(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  return to_text(bio);
}

std::string pem_of(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return to_text(bio);
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) std::abort();  // a mistake in a test
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

/// With a random serial number: clients take two of one issuer with the same for the same.
X509* new_certificate(EVP_PKEY* key, const std::string& common_name) {
  constexpr long kDay = 24L * 3600;
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) std::abort();
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1U);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3650 * kDay);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  return certificate;
}

}  // namespace

struct TestCa::Keys {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

TestCa::TestCa(const std::string& name) : keys_(new Keys) {
  keys_->key = EVP_EC_gen("P-256");
  keys_->certificate = new_certificate(keys_->key, name);
  X509_set_issuer_name(keys_->certificate, X509_get_subject_name(keys_->certificate));
  for (const auto& [nid, value] : {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
                                   {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                   {NID_subject_key_identifier, "hash"}}) {
    add_extension(keys_->certificate, keys_->certificate, nid, value);
  }
  X509_sign(keys_->certificate, keys_->key, EVP_sha256());
  pem_ = pem_of(keys_->certificate);
}

TestCa::~TestCa() {
  X509_free(keys_->certificate);
  EVP_PKEY_free(keys_->key);
  delete keys_;
}

TestCertificate TestCa::issue(const std::string& common_name, const Extensions& extensions) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = new_certificate(key, common_name);
  X509_set_issuer_name(certificate, X509_get_subject_name(keys_->certificate));
  for (const auto& [nid, value] : extensions) {
    add_extension(certificate, keys_->certificate, nid, value);
  }
  X509_sign(certificate, keys_->key, EVP_sha256());
  TestCertificate made{.certificate = pem_of(certificate), .key = pem_of(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

TestCertificate TestCa::server(const std::vector<std::string>& names) const {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
  return issue("server", {{NID_basic_constraints, "critical,CA:FALSE"},
                          {NID_key_usage, "critical,digitalSignature"},
                          {NID_ext_key_usage, "serverAuth"},
                          {NID_authority_key_identifier, "keyid"},
                          {NID_subject_alt_name, all}});
}

TestCertificate TestCa::client(const std::string& common_name) const {
  return issue(common_name, {});
}

}  // namespace lpp::testing
