// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/objects.h"
#include "k8s/resource.h"

namespace lpp::operation {

/// What is done with a volume's directory.
enum class Kind {
  kMake,      // for a claim
  kTakeBack,  // what a kMake made for a volume that will not come to be
  kRemove,    // that of a released volume, data included
  kResize,    // gives that of a bound volume another limit
};

/// "make", "take back", "remove" or "resize".
std::string_view to_string(Kind kind);
/// "provision", "undo", "delete" or "resize": monitoring knows these words.
std::string_view label_of(Kind kind);

/// "create", "delete" or "resize": as in records, pod names, labels and the scripts' -a option.
std::string_view script_action(Kind kind);

/// How the volume in the directory is to look. Fixed with the directory, because configuration and
/// class may change before there is a volume.
struct Shape {
  k8s::VolumeSource source = k8s::VolumeSource::kHostPath;
  bool has_affinity = true;  // false on a shared filesystem
  std::string affinity_key{};
  std::string affinity_value{};
  std::vector<std::string> mount_options{};
  std::string reclaim_policy = "Delete";
  std::string provisioner{};  // that it is said to be of; "" = the daemon's own name
  bool operator==(const Shape&) const = default;
};

/// What holds a volume to its size, and its base path to what may be promised of it. Whoever works
/// on the node must know them, and says which of them hold (Progress).
struct Limits {
  bool hard = false;        // the directory gets a limit of its size
  std::int64_t inodes = 0;  // and of that many inodes; 0 = no limit of those
  std::string reserve{};    // "10Gi" or "10%" of the file system that no volume is promised
  bool overcommit = true;   // the sizes promised may exceed what the file system holds

  bool any() const { return hard || !reserve.empty() || !overcommit; }
  bool operator==(const Limits&) const = default;
};

/// Which of an operation's limits hold, as the work on the node tells.
struct Kept {
  std::optional<bool> size{};  // the directory has a limit of its size; nothing: not told
  std::int64_t bytes = 0;      // that limit; 0 = not told
  std::int64_t inodes = 0;     // and that of its inodes; 0 = none
  bool reserve = false;
  bool overcommit = false;
  bool mount = false;  // the base path is the root of a mounted file system
  bool operator==(const Kept&) const = default;
};

/// Tells operations apart. Attempts are counted over everything that is recorded for a volume, on
/// whichever node, so that none has the number of another.
struct Id {
  Kind kind = Kind::kMake;
  std::string volume_name{};
  std::string owner_uid{};
  int attempt = 1;
  bool operator==(const Id&) const = default;
};

/// One piece of work on one volume's directory: everything needed to do it, and to recognise it
/// again after a restart. A plain value; an executor records it before it acts, and from then on
/// the record counts, whatever has changed in the configuration.
struct Operation {
  Kind kind = Kind::kMake;
  std::string volume_name{};  // name of the PersistentVolume, made or to be made
  k8s::ObjectKey claim{};     // the claim it is for; may be empty for kRemove
  std::string owner_uid{};    // UID of the claim; kRemove: of the volume
  /// kRemove, kResize: of the claim that the volume was made for; "" = nobody knows. Whoever has
  /// kept a record of the directory touches nothing that is another claim's by now.
  std::string claim_uid{};
  int attempt = 1;  // 1, 2, …: each is recorded by itself
  std::string storage_class{};

  // Where.
  std::string node{};       // node name; "" = any (shared filesystem)
  bool shared = false;      // every node sees the directory, whichever does the work
  std::string base_path{};  // configured path the directory lies under; "" if unknown
  std::string path{};       // the volume's directory: absolute and lexically clean

  // What.
  std::int64_t size_bytes = 0;  // kMake, kResize: what it is to have
  std::string volume_mode = "Filesystem";
  std::string user{};
  std::string group{};
  std::string perm{};
  Limits limits{};  // kMake and what takes it back, kResize
  /// Nothing is done where the base path is not the root of a mounted file system: its disk may be
  /// missing.
  bool require_mount = false;
  /// What an agent called the disk that the directory is on, when it was made; "" = nobody said.
  /// Agents touch nothing on another one. A make by helper pods, and what takes it back: all that
  /// volumes of the base path name, with blanks in between.
  std::string disk{};
  /// kTakeBack: the directory goes only if nothing is in it, because it is not certain that it was
  /// made for this volume, or that no volume ever showed it.
  bool only_if_empty = false;
  /// kMake: of the volume; nothing in a record of a version that did not write it down.
  std::optional<Shape> shape{};

  Id id() const { return {kind, volume_name, owner_uid, attempt}; }
};

/// Why what has succeeded is not what was asked for: a limit that nobody on the node has set or
/// looked at, or one of another size. Empty when nothing is missing.
std::string what_is_missing(const Operation& operation, const Kept& kept);

/// Whether what was done for one of them, under an id that both have, was done for the other: ids
/// repeat, with another leader and another configuration. Only by what every version writes down.
bool same_work(const Operation& a, const Operation& b);

/// Whether both are about one directory of one node.
bool same_place(const Operation& a, const Operation& b);

}  // namespace lpp::operation
