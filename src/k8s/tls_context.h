// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/bounded_read.h"
#include "k8s/rest_config.h"

struct ssl_ctx_st;  // SSL_CTX of OpenSSL

namespace lpp::k8s {

/// A client certificate with its chain and its key, PEM.
struct ClientCertificate {
  std::string certificate{};
  std::string key{};
  bool empty() const { return certificate.empty() && key.empty(); }
  bool operator==(const ClientCertificate&) const = default;
};

/// Whom a TLS connection trusts and as whom it shows itself. Immutable, thread-safe.
class TlsContext {
 public:
  struct Input {
    std::string ca{};  // PEM; "" = the system's roots
    std::string ca_source{};
    ClientCertificate client{};
    std::string client_source{};
    std::string server_name{};  // the certificate must be valid for this name or IP address
    bool insecure = false;      // take any certificate
    bool operator==(const Input&) const = default;
  };

  /// kInvalid names the source of what cannot be used.
  static Result<std::shared_ptr<const TlsContext>> create(Input input);

  /// Prepares a client's context. Why a server was not trusted is written to *verify_error, which
  /// must outlive the connections of ctx.
  Result<void> configure(ssl_ctx_st* ctx, std::string* verify_error) const;

  const Input& input() const { return input_; }

 private:
  struct Parts;
  TlsContext(Input input, std::shared_ptr<const Parts> parts)
      : input_(std::move(input)), parts_(std::move(parts)) {}

  const Input input_;
  const std::shared_ptr<const Parts> parts_;
};

/// The TlsContext of a RestConfig as it is now: its files are read again every ten seconds, and
/// what cannot be used keeps the last good one. Thread-safe. The clock must outlive it.
class TlsProvider {
 public:
  TlsProvider(const RestConfig& config, Clock& clock);

  /// `exec_client` (of an exec plugin) is used when it is not empty. A changed context is another
  /// object. kInvalid when there never was a usable one.
  Result<std::shared_ptr<const TlsContext>> current(const ClientCertificate& exec_client = {});

  /// The next current() reads the files: the server or we were not trusted.
  void recheck_now();

 private:
  Result<TlsContext::Input> read_files() const;

  /// PEM, in the configuration or in a file.
  struct Source {
    std::string data{};
    BoundedRead file;

    Source(const FileOrData& from, Clock& clock) : data(from.data), file(from.file, clock) {}
    Result<std::string> read() const;
  };

  const Source ca_;
  const Source certificate_;
  const Source key_;
  const std::string server_name_;
  const bool insecure_;
  Clock& clock_;

  Mutex mutex_;
  std::shared_ptr<const TlsContext> current_ LPP_GUARDED_BY(mutex_);
  ClientCertificate exec_client_ LPP_GUARDED_BY(mutex_);
  TimePoint next_check_ LPP_GUARDED_BY(mutex_) = TimePoint::min();
};

/// What OpenSSL has to say about the last failure on this thread ("" = nothing), e.g. the alert
/// that the other side sent. Clears it.
std::string take_tls_error();

/// A whole (small) file; the error names it.
Result<std::string> read_small_file(const std::string& path);

}  // namespace lpp::k8s
