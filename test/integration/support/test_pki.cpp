// SPDX-License-Identifier: Apache-2.0
#include "integration/support/test_pki.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <memory>

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

X509* new_certificate(EVP_PKEY* key, const std::string& common_name, long serial) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 3600);
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
  long next_serial = 2;
};

TestCa::TestCa(const std::string& name) : keys_(new Keys) {
  keys_->key = EVP_EC_gen("P-256");
  keys_->certificate = new_certificate(keys_->key, name, 1);
  X509_set_issuer_name(keys_->certificate, X509_get_subject_name(keys_->certificate));
  add_extension(keys_->certificate, keys_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(keys_->certificate, keys_->certificate, NID_key_usage, "critical,keyCertSign");
  X509_sign(keys_->certificate, keys_->key, EVP_sha256());
  pem_ = pem_of(keys_->certificate);
}

TestCa::~TestCa() {
  X509_free(keys_->certificate);
  EVP_PKEY_free(keys_->key);
  delete keys_;
}

TestCertificate TestCa::issue(const std::string& common_name, const std::string& alt_names) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = new_certificate(key, common_name, keys_->next_serial++);
  X509_set_issuer_name(certificate, X509_get_subject_name(keys_->certificate));
  if (!alt_names.empty()) {
    add_extension(certificate, keys_->certificate, NID_subject_alt_name, alt_names);
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
  return issue("server", all);
}

TestCertificate TestCa::client(const std::string& common_name) const {
  return issue(common_name, "");
}

}  // namespace lpp::testing
