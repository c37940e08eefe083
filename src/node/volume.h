// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/kernel.h"

namespace lpp::node {

/// What a directory may hold. 0 = no limit.
struct Limits {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;

  bool any() const { return bytes != 0 || inodes != 0; }
  bool operator==(const Limits&) const = default;
};

/// More than this neither the kernel's numbers nor those of Kubernetes hold once it is rounded to
/// blocks; what is beyond would wrap around to a small limit or none.
inline constexpr std::uint64_t kMostSize = (std::uint64_t{1} << 63U) - 4096;

enum class Origin {
  kMade,   // this library made the directory
  kFound,  // it was there before: never removed by a take-back
};

enum class State {
  kMaking,    // recorded, and not in its place yet
  kPresent,   // in its place
  kRemoving,  // its removal has begun and has not ended
};

/// A volume as its record tells.
struct Volume {
  std::string id{};     // unique in the base folder; is_id()
  std::string path{};   // from the base folder; is_path()
  std::string claim{};  // "namespace/name", for people; may be empty
  std::string uid{};    // the claim's; may be empty
  Origin origin = Origin::kMade;
  State state = State::kPresent;
  std::uint32_t project = 0;  // on btrfs its subvolume; 0 = never had limits
  Limits limits{};
  std::uint64_t size = 0;  // bytes that it was promised, a limit or not; 0 = nobody said
  /// May have been shown to a tenant: from then on it goes for its own released volume only. Set
  /// in records that do not tell.
  bool published = true;
  /// What has left its place last was taken by a removal that did not know for which claim it was
  /// made, as of a volume that was bound to another one: nothing but that tells whose it is.
  bool taken_for_any = false;
  Identity directory{};
};

/// The folder of the records, in the base folder.
inline constexpr const char* kRecordFolder = ".local-path-provisioner";

/// 1 to 200 letters, digits, '.', '_' and '-' of ASCII, the first one a letter or digit.
bool is_id(std::string_view text);

/// Components that are not empty, ".", ".." or longer than 255 bytes, the first one not
/// kRecordFolder, without a NUL, in at most 4000 bytes; no slash in front or behind.
bool is_path(std::string_view text);

/// The id of a volume that has no name of its own: its path from the base folder, as far as that is
/// an id, else made from it. The same for helper pods and agents, or records are not found again.
std::string id_of_path(const std::string& path);

/// The last component.
inline std::string leaf_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// kInvalid: no limit can be set to this. What a volume without one was promised may be anything.
Result<void> check_can_be(const Limits& limits);

/// Whether the record tells of another claim than that one; "" = nobody knows which.
bool is_anothers(const Volume& recorded, const std::string& uid);
/// Whether what has left its place may have been taken for another claim than that one.
bool was_taken_for_another(const Volume& recorded, const std::string& uid);
/// For another claim the directory was there before: what the record tells is for the claim of now.
/// Whether it is another one.
bool note_claim(Volume& volume, const std::string& claim, const std::string& uid);

std::string_view to_string(Origin origin);
std::string_view to_string(State state);

/// The text of a record, and what it says. Bytes of `path` and `claim` that are not UTF-8 come back
/// as they were. kInvalid names what is wrong.
std::string encode_record(const Volume& volume);
Result<Volume> decode_record(std::string_view text);

}  // namespace lpp::node
