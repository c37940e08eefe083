// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sync.h"
#include "harness/daemon_process.h"
#include "harness/fault_proxy.h"
#include "harness/test_bed.h"

namespace lpp::testing {

inline constexpr const char* kDaemonNamespace = "local-path-storage";
inline constexpr const char* kDaemonLease = "rancher.io-local-path";

/// Creates every object of the manifest but the Deployment: the daemon under test is a process.
Result<void> apply_manifest(Kube& admin, const std::string& file);

struct InstallationOptions {
  std::string daemon{};                   // the program
  std::string folder{};                   // exists; gets configuration, kubeconfig and logs
  std::vector<std::string> extra_args{};  // for every start
  std::map<std::string, std::string> env{};
};

/// The daemon on a test bed, behind a fault proxy, with a configuration of its own. One thread uses
/// it, except for kill_daemon(), which the proxy's callbacks may call. Everything ends with it.
class Installation {
 public:
  /// Configures the bed's base paths; does not start the daemon.
  static Result<std::unique_ptr<Installation>> create(TestBed& bed, InstallationOptions options);

  TestBed& bed() { return bed_; }
  FaultProxy& proxy() { return *proxy_; }
  DaemonProcess& daemon() { return *daemon_; }
  std::string log_file() const { return options_.folder + "/daemon.log"; }
  std::string config_file() const { return options_.folder + "/config.json"; }

  enum class OldLease { kExpire, kKeep };
  /// Starts the process. A lease left behind by one that was killed is removed first, as if the
  /// time it is valid for had passed, unless it is to be kept.
  Result<void> start_daemon(OldLease lease = OldLease::kExpire);
  Result<void> wait_ready();
  /// SIGKILL; returns when it is dead.
  void kill_daemon();
  /// SIGTERM; an error unless it ends properly and in time.
  Result<void> stop_daemon(std::chrono::milliseconds limit = std::chrono::seconds(12));

  /// Replaces the configuration file at once, as an editor does.
  Result<void> write_config(const nlohmann::json& config);
  nlohmann::json default_config() const;

  /// The end of the daemon's log, for messages.
  std::string log_tail() const;
  /// All that the daemon has logged, over all its starts.
  std::string log_text() const;

 private:
  Installation(TestBed& bed, InstallationOptions options, std::unique_ptr<FaultProxy> proxy)
      : bed_(bed), options_(std::move(options)), proxy_(std::move(proxy)) {}

  TestBed& bed_;
  const InstallationOptions options_;
  const std::unique_ptr<FaultProxy> proxy_;
  Mutex mutex_;  // for kill_daemon() by another thread; the owner's thread alone replaces it
  std::shared_ptr<DaemonProcess> daemon_;
};

}  // namespace lpp::testing
