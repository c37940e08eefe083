// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/test_bed.h"

namespace lpp::testing {

/// An environment variable that run.sh sets; ends the test case when it is missing.
std::string required_setting(const char* name);

/// The control plane and the node that run.sh has started. The manifest is applied already; the
/// daemon gets a token of its ServiceAccount and nothing more, with RBAC in force.
class RealBed final : public TestBed {
 public:
  static Result<std::unique_ptr<RealBed>> create();

  std::string name() const override { return "real control plane"; }
  Kube& admin() override { return *admin_; }
  Upstream upstream() const override { return upstream_; }
  std::string daemon_token() const override { return daemon_token_; }
  /// In place of that of the manifest's ServiceAccount; before anything uses it.
  void use_daemon_token(std::string token) { daemon_token_ = std::move(token); }
  std::vector<std::string> nodes() const override { return {node_}; }
  /// A real node's disk is this machine's.
  std::string on_disk(const std::string& /*node*/, const std::string& path) const override {
    return path;
  }
  std::vector<std::string> base_paths() const override {
    return {volumes_ + "/first", volumes_ + "/second"};
  }
  std::string shared_path() const override { return volumes_ + "/shared"; }
  Patience patience() const override {
    return {.limit = std::chrono::seconds(90), .interval = std::chrono::milliseconds(50)};
  }

 private:
  RealBed() = default;

  /// One test case that fails is to fail no other: its namespaces, volumes and helper pods go, its
  /// directories leave the base paths for "leftovers" beside these.
  Result<void> set_leftovers_aside();

  std::unique_ptr<Kube> admin_;
  Upstream upstream_;
  std::string daemon_token_;
  std::string node_;
  std::string volumes_;
};

}  // namespace lpp::testing
