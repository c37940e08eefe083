// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/volumes.h"
#include "operation/executor.h"
#include "operation/operation.h"
#include "operation/reasons.h"

namespace lpp::agent {

/// Where an operation's directory lies in its base folder, and as which volume it is on record
/// there: the same as for a helper pod.
struct Place {
  std::string path{};  // from the base folder
  std::string volume_id{};
};

/// kInvalid: the path does not lie below the operation's base path.
Result<Place> place_of(const operation::Operation& operation);

operation::Space space_of(const node::Space& space);
/// nullopt: records cannot be read, and what they promise is not known.
std::optional<operation::Promises> promises_told(const node::BaseUsage& usage);

/// Whether it takes something away: slow for large trees, and to be stopped in between.
bool removes(operation::Kind kind);

/// Of the claim whose directory a removal is to take away; "" = whatever claim is on record.
const std::string& uid_of(const operation::Operation& operation);

struct WorkOptions {
  std::stop_token stop{};
  std::string cluster{};               // this one's, see node::MakeRequest
  std::function<bool()> may_remove{};  // asked when a removal is about to begin; may be empty
  node::ProgressSink gone{};           // told how much of it is gone, now and then; may be empty
};
/// Does an operation in its base folder, on this thread; once, however often it is called. What
/// became of it, as a helper pod would tell; the message of a failure is for an Event. kCancelled:
/// a removal was stopped, and goes on the next time or is called off (node::Volumes::put_back).
Result<operation::Progress> do_work(const node::Volumes& volumes,
                                    const operation::Operation& operation,
                                    const WorkOptions& options = {});

using operation::kOtherDisk;

/// By the serials of two orders: certainly not the same one. Who says none may mean any.
inline bool are_other_orders(std::string_view one, std::string_view other) {
  return !one.empty() && !other.empty() && one != other;
}

/// That `found` ("" = none) is there in place of the disk that is `expected`, and what to do.
std::string words_of_other_disk(const operation::Operation& operation, const std::string& expected,
                                const std::string& found);

/// kFailed, for an operation that met this error.
operation::Progress failed(const operation::Operation& operation, const Error& error);

}  // namespace lpp::agent
