// SPDX-License-Identifier: Apache-2.0
#include "k8s/resolver.h"

#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>

#include "base/strings.h"
#include "base/sync.h"
#include "k8s/transport.h"

namespace lpp::k8s {

namespace {

using Addresses = std::vector<Address>;

constexpr std::chrono::seconds kLate{1};  // then the answer before serves, if there is one

Result<Addresses> ask(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) return not_connected(::gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
  }
  if (addresses.empty()) return not_connected("no address");
  return addresses;
}

}  // namespace

Error not_connected(std::string message) {
  return Error{.code = ErrorCode::kUnavailable,
               .message = std::move(message),
               .reason = std::string(kConnectFailed)};
}

Result<Addresses> look_up(const std::string& host) { return ask(host, 0); }

struct Resolver::State {
  struct Name {
    bool asked = false;         // a thread waits for the answer
    std::uint64_t answers = 0;  // so many have come
    Result<Addresses> last = not_connected("no answer");
    Addresses good{};  // of the last answer that had any
  };

  explicit State(LookUp given) : look_up(std::move(given)) {}

  void answer(const std::string& host, Result<Addresses> got) {
    MutexLock lock(mutex);
    Name& name = names[host];
    name.asked = false;
    ++name.answers;
    if (got.ok()) name.good = *got;
    name.last = std::move(got);
    changed.notify_all();
  }

  const LookUp look_up;
  Mutex mutex;
  CondVar changed;
  std::map<std::string, Name> names LPP_GUARDED_BY(mutex);  // as many as servers and proxies
};

Resolver::Resolver(Clock& clock, LookUp look_up)
    : clock_(clock), state_(std::make_shared<State>(std::move(look_up))) {}

Result<Addresses> Resolver::resolve(const std::string& host, const CallGuard::Call& call) {
  if (auto literal = ask(host, AI_NUMERICHOST); literal.ok()) return literal;
  const TimePoint begin = clock_.now();
  // Half of what is left is for the connection.
  const TimePoint late = begin + std::min<Duration>(kLate, (call.deadline() - begin) / 2);
  bool start = false;
  std::uint64_t seen = 0;
  {
    MutexLock lock(state_->mutex);
    State::Name& name = state_->names[host];
    start = !std::exchange(name.asked, true);
    seen = name.answers;
  }
  if (start) {
    try {
      std::thread([state = state_, host] {
        set_thread_name("dns");
        state->answer(host, state->look_up(host));
      }).detach();
    } catch (const std::system_error& error) {
      state_->answer(host, not_connected(error.what()));
    }
  }
  MutexLock lock(state_->mutex);
  const State::Name& name = state_->names[host];
  while (name.answers == seen && call.ended() == CallGuard::Ended::kNo) {
    const TimePoint now = clock_.now();
    if (now >= call.deadline() || (now >= late && !name.good.empty())) break;
    clock_.wait_until(state_->changed, state_->mutex, now + kLookAtCall);
  }
  if (!name.good.empty()) return name.good;
  if (name.answers == seen)
    return not_connected("no answer in time").wrap("cannot resolve " + host);
  return Error(name.last.error()).wrap("cannot resolve " + host);
}

}  // namespace lpp::k8s
