// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "devcluster/cluster.h"
#include "harness/daemon_process.h"
#include "harness/kube.h"

namespace lpp::devcluster {

struct DemoOptions {
  std::string daemon{};                         // the program
  std::string manifest{};                       // deploy/local-path-storage.yaml
  std::string shown{};                          // what the manifest is called when it is told of
  std::string folder{};                         // as ClusterOptions::folder
  std::map<std::string, std::string> images{};  // as ClusterOptions::images
  bool keep = false;                            // wait for a signal between making and removing
};

/// The whole story of a volume on an embedded cluster, one printed line per step: the cluster, the
/// objects of the manifest, the daemon, a claim and a pod that writes a file, and the removal of
/// all that. SIGINT and SIGTERM must be blocked in all threads; they end it early.
/// One thread only.
class Demo {
 public:
  explicit Demo(DemoOptions options);
  virtual ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  /// The exit code. What went wrong is printed.
  int run();

 protected:
  static constexpr const char* kClaimName = "demo-claim";  // in the namespace "default"
  static constexpr const char* kPodName = "demo-pod";
  static constexpr std::chrono::seconds kPatience{60};  // the machine may be busy

  virtual nlohmann::json claim() const;
  virtual nlohmann::json pod() const;
  /// Of the daemon, besides the usual ones.
  virtual std::vector<std::string> daemon_arguments() const { return {}; }
  /// What else is to run, once the daemon is ready.
  virtual Result<void> start_others() { return {}; }
  /// What there is to see once the pod runs.
  virtual Result<void> show();

  /// A container that runs the script, with the claim's volume at /data.
  static nlohmann::json pod_with_script(const std::string& script);
  void say(const std::string& line);
  bool stopped();
  Result<void> expect(const std::string& what, const ObjectRef& ref,
                      const std::function<bool(const nlohmann::json*)>& condition);

  const DemoOptions& options() const { return options_; }
  Clock& clock() { return clock_; }
  Cluster& cluster() { return *cluster_; }
  testing::Kube& kube() { return *kube_; }
  std::vector<ObjectPtr> helper_pods() const;
  /// From the claim's creation.
  std::chrono::milliseconds bound_after() const { return bound_after_; }
  /// What the daemon's /metrics says.
  std::string metrics() const;
  /// Of the volume, on this machine.
  const std::string& directory() const { return directory_; }

 private:
  Result<void> tell();
  Result<void> start_cluster();
  Result<void> apply_manifest();
  Result<void> start_daemon();
  Result<void> make_volume();
  Result<void> wait_for_signal();
  Result<void> remove_volume();

  void explain(const Error& error);

  const DemoOptions options_;
  SystemClock clock_;
  const TimePoint began_;
  const bool colours_;
  bool interrupted_ = false;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<testing::Kube> kube_;
  std::unique_ptr<testing::DaemonProcess> daemon_;
  std::chrono::milliseconds bound_after_{};
  std::string volume_;
  std::string node_;
  std::string path_;       // of the volume on its node
  std::string directory_;  // the same on this machine
};

}  // namespace lpp::devcluster
