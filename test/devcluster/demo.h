#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "devcluster/cluster.h"
#include "harness/daemon_process.h"
#include "harness/kube.h"

namespace lpp::devcluster {

struct DemoOptions {
  std::string daemon{};    // the program
  std::string manifest{};  // deploy/local-path-storage.yaml
  bool keep = false;       // wait for a signal between making and removing
};

/// The whole story of a volume on an embedded cluster, one printed line per step: the cluster, the
/// objects of the manifest, the daemon, a claim and a pod that writes a file, and the removal of
/// all that. SIGINT and SIGTERM must be blocked in all threads; they end it early.
/// One thread only.
class Demo {
 public:
  explicit Demo(DemoOptions options);
  ~Demo();

  /// The exit code. What went wrong is printed.
  int run();

 private:
  Result<void> tell();
  Result<void> start_cluster();
  Result<void> apply_manifest();
  Result<void> start_daemon();
  Result<void> make_volume();
  Result<void> show_file();
  Result<void> wait_for_signal();
  Result<void> remove_volume();

  void say(const std::string& line);
  void explain(const Error& error);
  bool stopped();
  Result<void> expect(const std::string& what, const ObjectRef& ref,
                      const std::function<bool(const nlohmann::json*)>& condition);

  const DemoOptions options_;
  SystemClock clock_;
  const TimePoint began_;
  const bool colours_;
  bool interrupted_ = false;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<testing::Kube> kube_;
  std::unique_ptr<testing::DaemonProcess> daemon_;
  std::string volume_;
  std::string node_;
  std::string path_;       // of the volume on its node
  std::string directory_;  // the same on this machine
};

}  // namespace lpp::devcluster
