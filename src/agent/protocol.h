// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/listed.h"
#include "base/result.h"
#include "operation/executor.h"
#include "operation/operation.h"
#include "operation/space.h"
#include "operation/usage.h"

/// What the controller and the agents on the nodes say to each other: one JSON object for each
/// request and answer, in POSTs over HTTPS. The agent asks, the controller answers; nobody connects
/// to an agent.
///
///     hello   an agent begins a session, and hears which base paths are its node's
///     tell    what the agent sees of its base paths, what it has on record, how that stands, and
///             which directories there are
///     poll    held open until there are orders; says up to which number orders have been taken
///
/// An agent begins with hello, tells everything, in parts, then keeps one poll open and tells what
/// changes. It removes nothing without having asked, in a tell, right before. Orders are numbered
/// within a session and repeated until a poll says that they were taken. An answer of 410 ends the
/// session (begin anew with hello), 503 comes from a replica that does not lead (ask another one),
/// 401 and 403 refuse the token, 400 names what is wrong, after 429 the same may be tried again.
///
/// Unknown members are ignored and absent ones have defaults, so that controller and agent may be
/// of different versions; where that is not enough `protocol` rises, see protocol_version.h. All
/// functions are pure and take whatever arrives: kInvalid names the member.
namespace lpp::agent {

inline constexpr int kProtocol = 1;
/// Of the tokens with which agents show who they are.
inline constexpr std::string_view kAudience = "local-path-provisioner-agent";

inline constexpr std::string_view kHelloTarget = "/agent/v1/hello";
inline constexpr std::string_view kTellTarget = "/agent/v1/tell";
inline constexpr std::string_view kPollTarget = "/agent/v1/poll";

/// Progress::reason of a removal that was called off, and cannot be put back. With
/// Directory::kKept it may not even have begun: its disk is not there to tell.
inline constexpr std::string_view kCannotCallOff = "CannotCallOff";

/// Bounds of what is accepted from the other side.
inline constexpr std::size_t kMaxMessage = 4UL << 20U;  // bytes; agents tell in parts
inline constexpr std::size_t kMaxWorks = 500;           // in one tell
inline constexpr std::size_t kMaxBases = 200;
inline constexpr std::size_t kMaxUses = 2000;    // in one tell
inline constexpr std::size_t kMaxListed = 2000;  // in one tell
inline constexpr std::size_t kMaxSweeps = 100;   // in one tell
inline constexpr std::size_t kMaxOrders = 200;   // in one answer
inline constexpr std::size_t kMaxWords = 4096;   // bytes of one message for people

struct Hello {
  int protocol = kProtocol;  // the newest that the agent speaks
  std::string program{};     // version of the agent, for people
};

struct Welcome {
  int protocol = kProtocol;  // what is spoken from here on
  std::string program{};     // version of the controller, for people
  std::string session{};
  std::vector<std::string> base_paths{};
  /// Tells the cluster from others; "" = the controller does not know.
  std::string cluster{};
};

/// A base path as the agent sees it.
struct Base {
  std::string path{};
  std::string problem{};  // why the agent cannot work there; "" = it can
  /// Of its record folder: tells a disk from another one under the same path; "" = it has none yet.
  std::string identity{};
  /// With a problem: the one that this agent saw there first; "" = it tells none.
  std::string seen{};
  std::optional<operation::Space> space{};
  std::int64_t promised_bytes = 0;   // sum of the sizes on record
  std::int64_t volumes = 0;          // on record
  std::int64_t limits_not_held = 0;  // of these, with a limit on record that does not hold now
  /// Of those, whose directory was taken out of its limit: its owner can.
  std::int64_t limits_taken_off = 0;
  std::string cluster{};  // whose records those are; "" = this one's, or nobody knows
  bool operator==(const Base&) const = default;
};

/// Of these the one with that path; nullptr: there is none.
const Base* find_base(const std::vector<Base>& bases, std::string_view path);

/// An operation that an agent has on record.
struct Work {
  operation::Operation operation{};
  operation::Progress progress{};  // kWaiting: not begun; without changes_at
  std::string cluster{};           // whose controller has ordered it; on the disk only
  /// Of the order that it came with: ids repeat once all is forgotten, these do not. nullopt: the
  /// agent is of a version that keeps none.
  std::optional<std::string> serial{};
  std::int64_t gone = 0;  // of a removal: files and directories, about
};

/// An operation that is on record no more, and acts no more.
struct Ended {
  operation::Id id{};
  std::string serial{};  // of the order, see Work; "" = nobody says
  bool operator==(const Ended&) const = default;
};

struct Tell {
  std::string session{};
  /// The first one of a session, and what belongs to it: what is not told is not on record.
  bool everything = false;
  bool last = true;                          // of those
  std::optional<std::vector<Base>> bases{};  // all of them, if any has changed
  std::vector<Work> works{};                 // those that have changed
  std::vector<Ended> ended{};
  /// Removals that were called off, and of which nothing was left that could be put back.
  std::vector<operation::Operation> nothing_left{};
  /// Removals that were ordered. They begin, or go on, only when the answer says so: an order may
  /// arrive long after it was called off.
  std::vector<operation::Id> asks{};
  std::vector<Use> uses{};  // those that have changed
  std::optional<InventoryPart> inventory{};
  /// Of what is listed: makes and removals that nobody has on record, and that have lain there for
  /// so long that they go unless somebody needs them.
  std::vector<Listed> sweeps{};
  /// Of a decoded one: what is wrong with items that could not be read, and are left out. One of
  /// them, as from a newer agent or a damaged record, must not silence a node.
  std::vector<std::string> unread{};
};

/// The answer to a tell.
struct Told {
  std::vector<operation::Id> begin{};  // of those asked for; the others wait for another order
  std::vector<std::string> sweep{};    // paths of those that nobody needs
};

struct Order {
  enum class What {
    kStart,   // record the operation and do it; the same for one that is on record: go on with it
    kCancel,  // act no more, put back what a removal has left, then tell that it has ended
    kForget,  // what is over needs no record any more
    kBases,   // these are the node's base paths from now on
  };
  std::int64_t number = 0;  // 1, 2, … in a session
  What what = What::kStart;
  std::optional<operation::Operation> operation{};  // kStart; kCancel of a removal
  operation::Id id{};                               // kCancel, kForget
  std::string serial{};                             // kStart, kCancel; "" = any
  std::vector<std::string> base_paths{};            // kBases
  /// kCancel of a make: what had begun stays on record with its outcome until it is to be
  /// forgotten, so that nobody has to remember what it may have left.
  bool keep = false;
};

struct Poll {
  std::string session{};
  std::int64_t taken = 0;  // all orders up to this number have been taken
};

struct Orders {
  std::vector<Order> orders{};  // by number; none: nothing for now, poll again
};

std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
std::string encode(const Tell& tell);
std::string encode(const Told& told);
std::string encode(const Poll& poll);
std::string encode(const Orders& orders);

Result<Hello> decode_hello(std::string_view text);
Result<Welcome> decode_welcome(std::string_view text);
Result<Tell> decode_tell(std::string_view text);
Result<Told> decode_told(std::string_view text);
Result<Poll> decode_poll(std::string_view text);
Result<Orders> decode_orders(std::string_view text);

/// One work by itself: also what an agent writes down on the disk.
std::string encode(const Work& work);
Result<Work> decode_work(std::string_view text);

}  // namespace lpp::agent
