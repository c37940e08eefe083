// SPDX-License-Identifier: Apache-2.0
#include "cli/adoption.h"

#include <array>
#include <utility>

#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"
#include "k8s/quantity.h"
#include "provisioner/claim_shape.h"
#include "provisioner/class_parameters.h"
#include "provisioner/plan.h"
#include "provisioner/volume_manifest.h"
#include "text/dns_names.h"

namespace lpp::cli {

namespace {

using Claim = std::shared_ptr<const k8s::PersistentVolumeClaim>;

Error conflict(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }

/// The name that the record tells, or that the claim asks for; else one made of the place.
Result<std::string> volume_name(const AdoptionRequest& request, const Claim& claim) {
  std::string name;
  if (request.record != nullptr && text::is_dns_subdomain(request.record->volume)) {
    name = request.record->volume;
  }
  if (claim != nullptr && !claim->volume_name.empty()) {
    if (!name.empty() && name != claim->volume_name) {
      return conflict("claim " + request.claim.to_string() + " belongs to volume " +
                      claim->volume_name + " already");
    }
    name = claim->volume_name;
  }
  if (name.empty()) name = "adopted-" + short_hash(request.node + '\n' + request.path);
  return name;
}

Result<std::shared_ptr<const k8s::StorageClass>> class_for(const AdoptionRequest& request,
                                                           const Claim& claim,
                                                           const Surroundings& around) {
  std::string name = request.storage_class;
  if (claim != nullptr) {
    if (!name.empty() && name != claim->class_name()) {
      return conflict("claim " + request.claim.to_string() + " is of StorageClass \"" +
                      claim->class_name() + "\", not " + name);
    }
    name = claim->class_name();
  }
  std::shared_ptr<const k8s::StorageClass> only;
  for (const auto& one : around.view.classes.list()) {
    if (!around.view.names.has(one->provisioner)) continue;
    if (one->meta.name == name) return one;
    if (only != nullptr && name.empty()) {
      return invalid("several StorageClasses are of provisioner " +
                     provisioner::to_string(around.view.names) + ": say which with --class");
    }
    only = one;
  }
  if (name.empty() && claim == nullptr && only != nullptr) return only;
  return invalid("there is no StorageClass \"" + name + "\" of provisioner " +
                 provisioner::to_string(around.view.names));
}

Result<std::string> size_for(const AdoptionRequest& request, const Claim& claim) {
  std::string size = request.size;
  if (size.empty() && request.record != nullptr && request.record->size > 0) {
    size = quantity_of(request.record->size);
  }
  if (size.empty() && claim != nullptr) size = claim->storage_request;
  if (size.empty()) return invalid("nobody has written down its size: say it with --size");
  const auto bytes = k8s::Quantity::parse(size);
  if (!bytes.ok() || bytes->value() <= 0) return invalid("not a size: " + log::quoted(size));
  if (claim == nullptr) return size;
  LPP_ASSIGN_OR_RETURN(const auto wanted, k8s::Quantity::parse(claim->storage_request),
                       "size of claim " + request.claim.to_string());
  if (wanted.value() > bytes->value()) {
    return conflict("claim " + request.claim.to_string() + " asks for " + claim->storage_request +
                    ", more than " + size + ": say a size with --size");
  }
  return size;
}

Result<void> check_claim(const k8s::PersistentVolumeClaim& claim, const std::string& volume,
                         const Surroundings& around) {
  const std::string name = "claim " + claim.meta.key().to_string();
  if (claim.meta.deleting()) return conflict(name + " is being deleted");
  if (!claim.volume_name.empty() && find_volume(around.view, claim.volume_name) != nullptr) {
    return conflict(name + " has volume " + claim.volume_name + " already");
  }
  if (!claim.volume_name.empty() && claim.volume_name != volume) {
    return conflict(name + " belongs to volume " + claim.volume_name + " already");
  }
  const auto storage_class = around.view.classes.get({"", claim.class_name()});
  if (provisioner::should_provision(claim, storage_class.get(), around.view.names)) {
    return conflict("a new volume is being made for " + name +
                    ": delete its pods and the claim, adopt, and make the claim again");
  }
  return {};
}

/// A volume of the claim's name that is on its way, perhaps by an adoption of another directory.
Result<void> check_not_promised(const k8s::ObjectKey& claim, const std::string& volume,
                                const ClusterView& view) {
  for (const auto& other : view.directories.list()) {
    const bool is_free = other->claim_uid.empty() && !other->meta.deleting();
    if (is_free && other->claim == claim && other->meta.name != volume) {
      return conflict("volume " + other->meta.name + " waits for claim " + claim.to_string() +
                      " already");
    }
  }
  return {};
}

constexpr const char* kSayOtherClaim =
    "; if it is to have the directory all the same, say --other-claim";

/// A directory whose claim is there is listed as nobody's by no agent, so nothing but its name may
/// tell whose it is: one that is made without a pattern holds the claim's UID.
Result<void> check_no_other_uid(const AdoptionRequest& request, const ClusterView& view) {
  for (const auto& other : view.claims.list()) {
    const std::string& uid = other->meta.uid;
    const bool is_other = other->meta.key() != request.claim;
    if (!is_other || uid.empty() || request.path.find("pvc-" + uid) == std::string::npos) continue;
    return conflict(request.path + " bears the UID of claim " + other->meta.key().to_string() +
                    ", not of claim " + request.claim.to_string() + kSayOtherClaim);
  }
  return {};
}

/// What is to be told of the owner on record. Refused is another one, unless that is said. In a
/// rebuilt cluster each claim has another UID than on record: there its name is all there is.
Result<std::string> compare_owner(const AdoptionRequest& request, const Claim& claim,
                                  const ClusterView& view) {
  if (!request.other_claim) {
    LPP_RETURN_IF_ERROR(check_no_other_uid(request, view), "refused");
  }
  const Orphan* const record = request.record;
  if (const Orphan* const near = request.near; near != nullptr && !request.other_claim) {
    return conflict(request.path + " overlaps " + near->path + ", which is on record" +
                    (near->claim.name.empty() ? "" : " of claim " + near->claim.to_string()) +
                    kSayOtherClaim);
  }
  if (record == nullptr) {
    return std::string("the provisioner lists no record of it: whose it was is not known");
  }
  if (record->claim.name.empty()) return std::string("no record tells whose it was");
  const bool foreign = record->why == Orphan::kOtherCluster;
  const std::string on_record = "claim " + record->claim.to_string();
  std::string whose;
  if (foreign) {
    whose = "its record is of another cluster" +
            (record->cluster.empty() ? "" : " (" + record->cluster + ")") +
            ", so the UID of the claim was not compared";
  }
  if (record->claim != request.claim) {
    if (!request.other_claim) {
      return conflict("the record of " + request.path + " names " + on_record + ", not claim " +
                      request.claim.to_string() + kSayOtherClaim);
    }
    return "its record names " + on_record + (whose.empty() ? "" : "; " + whose);
  }
  const bool was_made_anew =
      !foreign && claim != nullptr && !record->uid.empty() && claim->meta.uid != record->uid;
  if (!was_made_anew) return whose;
  if (!request.other_claim && !request.from_record) {
    return conflict("the record of " + request.path + " names an earlier " + on_record +
                    ", of UID " + record->uid + ", and the one that is there has UID " +
                    claim->meta.uid + kSayOtherClaim);
  }
  return "its record names an earlier claim of that name, of UID " + record->uid;
}

/// Whether the directory's record and its disk hold it to just that size.
bool is_held_to(const Orphan* record, const std::string& size) {
  const auto bytes = k8s::Quantity::parse(size);
  return record != nullptr && record->limit > 0 && bytes.ok() && bytes->value() == record->limit;
}

/// The claim, or one that would be bound.
k8s::PersistentVolumeClaim model_of(const AdoptionRequest& request, const Claim& claim,
                                    const std::string& storage_class, const std::string& size) {
  k8s::PersistentVolumeClaim model;
  if (claim != nullptr) model = *claim;
  model.meta.ns = request.claim.ns;
  model.meta.name = request.claim.name;
  if (claim == nullptr) {
    model.storage_class_name = storage_class;
    model.access_modes = {"ReadWriteOnce"};
  }
  model.storage_request = size;
  return model;
}

}  // namespace

std::string quantity_of(std::int64_t bytes) {
  static constexpr std::array<std::pair<int, const char*>, 4> kUnits{
      {{40, "Ti"}, {30, "Gi"}, {20, "Mi"}, {10, "Ki"}}};
  for (const auto& [shift, unit] : kUnits) {
    const std::int64_t one = std::int64_t{1} << shift;
    if (bytes >= one && bytes % one == 0) return std::to_string(bytes / one) + unit;
  }
  return std::to_string(bytes);
}

Result<void> set_reclaim_policy(k8s::ApiClient& api, const std::string& volume,
                                const std::string& uid, const std::string& policy) {
  if (uid.empty()) return invalid("the API server tells no UID of it");
  const nlohmann::json patch{{"metadata", {{"uid", uid}}},
                             {"spec", {{"persistentVolumeReclaimPolicy", policy}}}};
  const auto patched =
      api.patch(k8s::kPersistentVolumes, {"", volume}, k8s::PatchType::kMerge, patch);
  if (!patched.ok()) return patched.error();
  return {};
}

Result<Adoption> plan_adoption(const AdoptionRequest& request, const Surroundings& around) {
  if (!text::is_dns_label(request.claim.ns) || !text::is_dns_subdomain(request.claim.name)) {
    return invalid("not a claim: " + log::quoted(request.claim.to_string()) +
                   "; it is named NAMESPACE/NAME");
  }
  LPP_ASSIGN_OR_RETURN(auto place, place_on(request.node, request.path, around), "refused");
  if (request.record != nullptr && request.record->why == Orphan::kUnfinished) {
    return conflict(request.path + " is not whole: " + request.record->message);
  }
  if (request.record != nullptr) place.disk = request.record->disk;
  const Claim claim = around.view.claims.get(request.claim);
  LPP_ASSIGN_OR_RETURN(std::string whose, compare_owner(request, claim, around.view), "refused");
  LPP_ASSIGN_OR_RETURN(place.volume_name, volume_name(request, claim), "refused");
  if (claim != nullptr) {
    LPP_RETURN_IF_ERROR(check_claim(*claim, place.volume_name, around), "refused");
  }
  LPP_RETURN_IF_ERROR(check_nobodys(place, place.volume_name, around), "refused");
  LPP_RETURN_IF_ERROR(check_not_promised(request.claim, place.volume_name, around.view), "refused");
  LPP_ASSIGN_OR_RETURN(const auto storage_class, class_for(request, claim, around), "refused");
  LPP_ASSIGN_OR_RETURN(const std::string size, size_for(request, claim), "refused");

  const auto model = model_of(request, claim, storage_class->meta.name, size);
  const auto node = around.nodes->get({"", request.node});
  auto shape = provisioner::make_shape(model, *storage_class, node.get(), around.config);
  if (const auto* refusal = std::get_if<provisioner::Refusal>(&shape)) {
    return invalid(refusal->message);
  }
  place.shape = std::get<operation::Shape>(std::move(shape));
  if (place.shape->has_affinity == place.shared) {
    return conflict("path " + request.path +
                    (place.shared ? " is shared by all nodes, and" : " is a node's own, and not") +
                    " what StorageClass " + storage_class->meta.name + " has");
  }
  // As long as nobody has looked whether another volume came up there at the same time.
  place.shape->reclaim_policy = "Retain";
  Adoption adoption{.volume = place.volume_name,
                    .storage_class = storage_class->meta.name,
                    .size = size,
                    .claim_exists = claim != nullptr,
                    .whose = std::move(whose)};
  const auto limits = provisioner::limits_of(*storage_class);
  const auto* const asked = std::get_if<operation::Limits>(&limits);
  const bool wants_limit = asked != nullptr && asked->hard;
  place.limits.hard = wants_limit && is_held_to(request.record, size);
  adoption.lacks_limit = wants_limit && !place.limits.hard;
  adoption.manifest = provisioner::make_volume(place, model, storage_class->provisioner);
  nlohmann::json& reference = adoption.manifest["spec"]["claimRef"];
  reference.erase("resourceVersion");
  // Only the claim that has lost this very volume must be told by its UID. Else it may be made
  // again until it is bound, and a volume that never was bound is not released by that.
  if (claim == nullptr || claim->volume_name != place.volume_name) reference.erase("uid");
  // The daemon's comes with the binding: what is deleted before that leaves its directory alone.
  adoption.manifest["metadata"].erase("finalizers");
  // A mistyped path is an error of the pod, and not an empty directory.
  nlohmann::json& spec = adoption.manifest["spec"];
  if (spec.contains("hostPath")) spec["hostPath"]["type"] = "Directory";
  adoption.place = std::move(place);
  return adoption;
}

}  // namespace lpp::cli
