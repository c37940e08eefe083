// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "node/quota.h"
#include "node/tree_removal.h"
#include "node/volume.h"

// What is asked of Volumes (volumes.h), and some of its answers.

namespace lpp::node {

/// Error::reason of a make: see MakeRequest::cluster. Nothing was touched.
inline constexpr const char* kOtherCluster = "OtherCluster";

/// Whom a directory is made for. What is absent stays as the system makes it.
struct Access {
  std::optional<std::uint32_t> user{};   // below 2^32 - 1
  std::optional<std::uint32_t> group{};  // below 2^32 - 1
  std::uint32_t mode = 0777;             // up to 07777
};

/// What is to be left of the base folder's file system.
struct Room {
  struct Reserve {
    std::uint64_t bytes = 0;
    unsigned percent = 0;  // of the file system's size, besides
  };
  /// A volume's size must fit into what is free, and leave so much.
  std::optional<Reserve> reserve{};
  /// false: the sizes of all volumes, and what others use, must fit into what is not reserved.
  bool overcommit = true;

  bool any() const { return reserve.has_value() || !overcommit; }
};

struct MakeRequest {
  std::string id{};
  std::string path{};   // from the base folder
  std::string claim{};  // for people
  std::string uid{};
  Access access{};
  Limits limits{};         // any: the file system must be able to hold them
  std::uint64_t size = 0;  // bytes that the volume is promised, a limit or not
  Room room{};             // looked at for what is promised anew
  /// Which is this one; "" = nobody knows. What is another claim's by a record of another cluster,
  /// or of one that nobody can compare, is refused; nullopt: nothing is compared.
  std::optional<std::string> cluster{};
  bool published = true;  // a tenant may see it as soon as it is made
};

struct ResizeRequest {
  std::string id{};
  std::string uid{};  // of the claim it was made for; "" = whatever claim is on record
  Limits limits{};    // of a volume that has limits; 0 leaves one as it is
  std::uint64_t size = 0;
  bool limited = false;  // a volume without limits is refused
  /// As on order of the provisioner: who was given more by hand keeps it.
  bool lowers_nothing = false;
  Room room{};
};

/// Of a directory that is there, with what is in it.
struct AdoptRequest {
  std::string id{};
  std::string path{};   // from the base folder
  std::string claim{};  // for people
  std::string uid{};
  Limits limits{};          // must be any
  std::uint64_t size = 0;   // bytes that the volume is promised
  ProgressSink progress{};  // may be empty
  std::stop_token stop{};
};

enum class Removal {
  kReleased,  // the volume is not needed any more: whatever its directory holds goes
  /// Its making is not needed any more: only a directory that was made for it goes, and only if
  /// nothing is in it. Whoever asks cannot be sure that nobody has used it: the cluster's memory
  /// may be older than the disk's.
  kTakeBack,
  kIfEmpty,  // somebody may have used it: only an empty directory goes, whoever made it
};

struct RemoveRequest {
  std::string id{};
  std::string path{};  // for a volume without a record; "" = only with one
  std::string uid{};   // of the claim it was made for; "" = whatever claim is on record
  Removal removal = Removal::kReleased;
  ProgressSink progress{};  // may be empty
  std::stop_token stop{};
  /// Asked right before the first of its files goes, when everything else is prepared. False: the
  /// directory goes back into its place, kCancelled. May be empty.
  std::function<bool()> may_begin{};
};

enum class Removed {
  kRemoved,
  kAbsent,  // there was no directory
  kKept,    // one that is not empty, or that was not made for this volume
};

struct Listing {
  std::vector<Volume> volumes{};        // by id
  std::vector<std::string> problems{};  // records that cannot be read, each with its name
};

enum class PutBack {
  kInPlace,  // what is left of the directory is where it belongs, or never left
  kNothing,  // the directory itself is gone: what may be left of it can only be removed
};

}  // namespace lpp::node
