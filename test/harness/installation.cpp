// SPDX-License-Identifier: Apache-2.0
#include "harness/installation.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/file_text.h"
#include "harness/yaml_objects.h"

namespace lpp::testing {

using nlohmann::json;

Result<void> apply_manifest(Kube& admin, const std::string& file) {
  LPP_ASSIGN_OR_RETURN(const auto objects, read_yaml_objects(file), "manifest");
  // Namespaces first: a chart's objects come in the order of its templates.
  for (const bool namespaces : {true, false}) {
    for (const auto& object : objects) {
      const std::string kind = object.value("kind", "");
      if (kind == "Deployment" || (kind == "Namespace") != namespaces) continue;
      LPP_RETURN_IF_ERROR(admin.apply(object), file);
    }
  }
  return {};
}

Result<std::unique_ptr<Installation>> Installation::create(TestBed& bed,
                                                           InstallationOptions options) {
  LPP_ASSIGN_OR_RETURN(auto proxy, FaultProxy::start(bed.upstream()), "installation");
  const std::string kubeconfig = options.folder + "/daemon.kubeconfig";
  LPP_RETURN_IF_ERROR(proxy->write_kubeconfig(kubeconfig, bed.daemon_token()), "installation");
  std::unique_ptr<Installation> made(new Installation(bed, std::move(options), std::move(proxy)));
  LPP_RETURN_IF_ERROR(made->write_config(made->default_config()), "installation");
  return made;
}

json Installation::default_config() const {
  return {{"nodePathMap", json::array({{{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"},
                                        {"paths", bed_.base_paths()}}})}};
}

Result<void> Installation::write_config(const json& config) {
  const std::string fresh = config_file() + ".new";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << config.dump(2) << '\n';
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(fresh, config_file(), error);
  if (!out || error) return Error{.message = config_file() + ": cannot be written"};
  return {};
}

Result<void> Installation::start_daemon(OldLease lease) {
  if (lease == OldLease::kExpire) {
    auto freed = bed_.admin().remove(k8s::kLeases, {kDaemonNamespace, kDaemonLease});
    if (!freed.ok() && !freed.error().is(ErrorCode::kNotFound)) return freed;
  }
  DaemonOptions options{.program = options_.daemon,
                        .args = {"--debug", "--leader-elect", "--kubeconfig",
                                 options_.folder + "/daemon.kubeconfig", "--config", config_file()},
                        .env = options_.env,
                        .log_file = log_file()};
  options.args.insert(options.args.end(), options_.extra_args.begin(), options_.extra_args.end());
  LPP_ASSIGN_OR_RETURN(auto daemon, DaemonProcess::start(options), "installation");
  MutexLock lock(mutex_);
  daemon_ = std::move(daemon);
  return {};
}

Result<void> Installation::wait_ready() { return daemon_->wait_ready(bed_.patience().limit); }

void Installation::kill_daemon() {
  std::shared_ptr<DaemonProcess> daemon;
  {
    MutexLock lock(mutex_);
    daemon = daemon_;
  }
  if (daemon != nullptr) daemon->kill();
}

Result<void> Installation::stop_daemon(std::chrono::milliseconds limit) {
  LPP_ASSIGN_OR_RETURN(const auto ended, daemon_->terminate(limit), "stop");
  if (ended.exit != ChildExit{}) {
    return Error{.message =
                     "the daemon stopped with " + ended.exit.to_string() + "\n" + log_tail()};
  }
  return {};
}

std::string Installation::log_text() const { return text_of(log_file()); }

std::string Installation::log_tail() const {
  return daemon_ == nullptr ? "the daemon was never started" : daemon_->log_tail();
}

}  // namespace lpp::testing
