// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "chaos/ledger.h"
#include "chaos/model.h"
#include "harness/test_bed.h"

namespace lpp::testing {

/// A volume of ours as the API shows it.
struct ChaosVolume {
  std::string pv{};
  std::string node{};     // "" = any
  std::string machine{};  // that is called so, whatever its Node object is called now
  std::string path{};     // on the node
  std::string disk{};     // the same on this machine
  std::string claim_uid{};
  std::string claim_name{};
  std::string phase{};
  bool deleting = false;
  bool deletes = false;  // policy Delete
  bool has_finalizer = false;
  bool has_affinity = false;
  bool by_agent = false;

  /// A leader whose cache was behind may have made it after its claim had gone; what is to be kept
  /// is kept then too.
  bool kept_after_claim() const { return !deletes && phase == "Released"; }
};

/// Compares a whole test bed with the model at a quiet point. One thread.
class Promises {
 public:
  /// `bases` are all folders that were ever configured. Bed and model must outlive the object.
  /// `agents`: the machines that have one.
  Promises(TestBed& bed, const ChaosModel& model, const Ledger& ledger,
           std::vector<std::string> nodes, std::vector<std::string> bases,
           std::vector<std::string> agents)
      : bed_(bed),
        model_(model),
        ledger_(ledger),
        nodes_(std::move(nodes)),
        bases_(std::move(bases)),
        agents_(std::move(agents)) {}

  /// "" when every promise is kept; otherwise the first that is not (yet).
  std::string broken();
  /// The file with which a run recognises the data of a volume.
  static constexpr const char* kDataFile = "chaos-data";
  static std::string data_file(const ChaosVolume& volume) { return volume.disk + "/" + kDataFile; }
  Result<std::vector<ChaosVolume>> volumes();
  ChaosVolume volume_of(const nlohmann::json& object) const;
  /// Where the node's path is on this machine, whatever the node is called now.
  std::string disk_of(const std::string& node, const std::string& path) const {
    return bed_.on_disk(machine_of(node), path);
  }
  /// Directories without a volume that nobody can know of any more; call it when nothing is broken.
  std::vector<std::string> excused() const { return excused_; }
  /// Directories of path patterns whose creation was taken back.
  std::vector<std::string> stayed() const { return stayed_; }

 private:
  std::string broken_claim(const ChaosClaim& claim, const nlohmann::json* object,
                           const std::vector<ChaosVolume>& volumes);
  bool is_refused(const ChaosVolume& volume);
  bool waits_for_refused(const ChaosClaim& claim, const std::vector<ChaosVolume>& volumes);
  std::string broken_volumes(const std::vector<ChaosVolume>& volumes);
  std::string stray_directories(const std::vector<ChaosVolume>& volumes);
  bool is_excused(const std::string& node, const std::string& disk) const;
  bool was_taken_back(const std::string& disk) const;
  bool is_left_parent(const std::string& disk) const;
  std::string unfinished(const std::string& node, const std::string& records,
                         const std::vector<ChaosVolume>& volumes);
  std::string look_into(const std::string& node, const std::string& path,
                        const std::vector<ChaosVolume>& volumes);

  TestBed& bed_;
  const ChaosModel& model_;
  const Ledger& ledger_;
  const std::vector<std::string> nodes_;
  const std::vector<std::string> bases_;
  const std::vector<std::string> agents_;
  std::set<std::string> may_stay_;
  std::vector<std::string> excused_;
  std::vector<std::string> stayed_;
};

}  // namespace lpp::testing
