// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/log.h"
#include "cli/cluster.h"
#include "flags/flag_values.h"

namespace lpp::cli {

namespace {

using flags::Values;

constexpr std::array kConnection = {
    Flag{.name = "kubeconfig",
         .placeholder = "FILE",
         .fallback_note = "files of $KUBECONFIG, else ~/.kube/config, else in-cluster",
         .help = "how to reach the API server"},
    Flag{.name = "context",
         .placeholder = "NAME",
         .help = "context of the kubeconfig",
         .values = Values::kContexts},
    Flag{.name = "cluster",
         .placeholder = "NAME",
         .help = "cluster of the kubeconfig, instead of the context's",
         .values = Values::kClusters},
    Flag{.name = "user",
         .placeholder = "NAME",
         .help = "user of the kubeconfig, instead of the context's",
         .values = Values::kUsers},
    Flag{.name = "as",
         .placeholder = "NAME",
         .help = "user to impersonate; system:serviceaccount:NAMESPACE:NAME for a ServiceAccount"},
    Flag{.name = "as-group",
         .placeholder = "NAME",
         .help = "group to impersonate, with --as; may be given several times"},
    Flag{.name = "as-uid", .placeholder = "UID", .help = "UID to impersonate, with --as"},
    Flag{.name = "request-timeout",
         .placeholder = "DURATION",
         .fallback_note = "10s, for lists 30s",
         .help = "time limit of one API call, like 5s or 2m, or a number of seconds; 0 = none"},
};

/// "5s", "5" (seconds) or "0"; nullopt for anything else.
std::optional<std::chrono::milliseconds> parse_timeout(const std::string& text) {
  // What stands for no limit: a deadline is kept, so that nothing waits for ever unseen.
  constexpr std::chrono::hours kLongest{24};
  std::optional<std::chrono::nanoseconds> value = flags::parse_go_duration(text);
  if (!value) {
    const auto seconds = flags::parse_go_int(text);
    if (!seconds || *seconds > std::chrono::seconds(kLongest).count()) return std::nullopt;
    value = std::chrono::seconds(*seconds);
  }
  if (value->count() < 0) return std::nullopt;
  if (value->count() == 0 || *value > kLongest) return kLongest;
  return std::chrono::ceil<std::chrono::milliseconds>(*value);
}

/// They become headers of each request.
bool is_header_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= ' ' && c != 0x7f; });
}

}  // namespace

std::span<const Flag> connection_flags() { return kConnection; }

bool asks_for_cluster(const FlagReader& flags) {
  return std::any_of(kConnection.begin(), kConnection.end(),
                     [&](const Flag& flag) { return flags.given(flag.name); });
}

void check_connection_flags(FlagReader& flags) {
  if (const auto request = connection_request(flags); !request.ok()) {
    flags.fail(request.error().message);
  }
}

Result<ConnectionRequest> connection_request(const FlagReader& flags) {
  ConnectionRequest out;
  out.kubeconfig = flags.text("kubeconfig");
  out.choice = {.context = flags.text("context"),
                .cluster = flags.text("cluster"),
                .user = flags.text("user")};
  out.impersonate.user = flags.text("as");
  out.impersonate.uid = flags.text("as-uid");
  out.impersonate.groups = flags.texts("as-group");
  if (out.impersonate.user.empty()) {
    for (const char* name : {"as", "as-group", "as-uid"}) {
      if (flags.given(name)) return invalid(fmt::format("--{} needs a user: --as NAME", name));
    }
  }
  std::vector<std::string> headers = out.impersonate.groups;
  headers.push_back(out.impersonate.user);
  headers.push_back(out.impersonate.uid);
  if (!std::all_of(headers.begin(), headers.end(), is_header_text)) {
    return invalid("--as, --as-group and --as-uid must not hold control characters");
  }
  if (flags.given("request-timeout")) {
    const std::string text = flags.text("request-timeout");
    out.request_timeout = parse_timeout(text);
    if (!out.request_timeout) {
      return invalid(fmt::format("--request-timeout={}: expected a duration like 5s or 2m, or 0",
                                 log::quoted(text)));
    }
  }
  return out;
}

}  // namespace lpp::cli
