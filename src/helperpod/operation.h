#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "k8s/resource.h"

namespace lpp::helperpod {

enum class HelperAction { kCreate, kDelete };

/// "create" or "delete": as in names, labels and the script's -a option.
std::string_view to_string(HelperAction action);

/// One piece of work on one volume's directory: everything needed to do it, and to recognise it
/// again after a restart. A plain value. A helper pod records it in its annotations.
struct Operation {
  HelperAction action = HelperAction::kCreate;
  std::string volume_name{};  // name of the PersistentVolume, made or to be made
  k8s::ObjectKey claim{};     // the claim it is for; may be empty for kDelete
  std::string owner_uid{};    // kCreate: UID of the claim; kDelete: UID of the volume
  std::string storage_class{};
  std::string node{};       // node name; "" = any (shared filesystem)
  bool shared = false;      // every node sees the directory, whichever does the work
  std::string base_path{};  // configured path the directory lies under; "" if unknown
  std::string path{};       // the volume's directory: absolute and lexically clean
  std::int64_t size_bytes = 0;
  std::string volume_mode = "Filesystem";
  std::string user{};
  std::string group{};
  std::string perm{};
  int attempt = 1;  // 1, 2, …: one helper pod each

  bool operator==(const Operation&) const = default;
};

/// True when they are of two volumes and, on one node, one's directory is, contains or lies inside
/// the other's. No node, and a shared filesystem, mean every node.
bool collide(const Operation& a, const Operation& b);

/// What an executor says about an operation it was asked to advance.
struct Progress {
  enum class State { kRunning, kSucceeded, kFailed };
  State state = State::kRunning;
  /// kFailed: the cause, complete enough for an Event (exit code, log tail …). kRunning: why it
  /// does not get on, if that is known and will not heal by itself (image pull …); else empty.
  std::string message{};
  /// False while nothing can have been done on the node yet, and nothing is about to be.
  bool started = true;
  /// With a message: the cause in one CamelCase word (Evicted, OOMKilled, ErrImagePull, Timeout …),
  /// for counting.
  std::string reason{};
  bool operator==(const Progress&) const = default;
};

}  // namespace lpp::helperpod
