// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/text.h"
#include "cli/version_command.h"
#include "flags/spelling.h"
#include "k8s/json_access.h"

namespace lpp::cli {

namespace complete_command {

using k8s::member, k8s::text;

namespace {

using flags::Values;

/// Nobody waits longer for a key.
constexpr std::chrono::seconds kPatience{3};

struct Offer {
  std::string value{};
  std::string_view help{};
};

/// What stands before the word that is completed.
struct Line {
  const Command* command = nullptr;  // nullptr = none yet
  bool help = false;                 // the command is `help`
  std::vector<std::string> flags{};  // and their values
  std::vector<std::string> words{};  // of the command, without its name
  const Flag* open = nullptr;        // the flag whose value is completed
  bool no_flags = false;             // "--" was there
};

/// The flags that a word may be: of the command, or before it of any.
std::vector<FlagGroup> groups_of(const Line& line, const Context& context) {
  if (line.command != nullptr) return all_flags(*line.command);
  std::vector<FlagGroup> all{global_flags()};
  for (const Command* command : context.commands) {
    all.insert(all.end(), command->flags.begin(), command->flags.end());
  }
  return all;
}

/// The flag of the last of the spelled arguments.
const Flag* flag_of(const flags::Spelling& spelling, std::span<const FlagGroup> groups) {
  return find_flag(groups, flags::flag_name(spelling.arguments.back()).value_or(""));
}

Line read_line(std::span<const std::string> before, const Context& context) {
  Line line;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string& word = before[i];
    const bool is_flag = !line.no_flags && flags::flag_name(word).has_value();
    if (!line.no_flags && word == "--") {
      line.no_flags = true;
    } else if (is_flag) {
      const auto groups = groups_of(line, context);
      const auto spelling = flags::spell(word, groups);
      if (!spelling.known) continue;
      if (spelling.value_follows && i + 1 == before.size()) {
        line.open = flag_of(spelling, groups);
        continue;
      }
      line.flags.push_back(word);
      if (spelling.value_follows) line.flags.push_back(before[++i]);
    } else if (line.command == nullptr && !line.help) {
      line.help = word == "help";
      line.command = find_command(context.commands, word);
      if (line.command == nullptr && !line.help) line.no_flags = true;  // it is none of ours
    } else {
      line.words.push_back(word);
    }
  }
  return line;
}

std::vector<Offer> commands_offered(const Context& context) {
  std::vector<Offer> out;
  for (const Command* command : context.commands) {
    if (!command->hidden) out.push_back({std::string(command->name), command->summary});
  }
  out.push_back({"help", "show this help, or that of a command"});
  return out;
}

std::vector<Offer> flags_offered(const Line& line) {
  std::vector<Offer> out;
  const auto groups =
      line.command != nullptr ? all_flags(*line.command) : std::vector<FlagGroup>{global_flags()};
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      out.push_back({"--" + std::string(flag.name), flag.help});
    }
  }
  return out;
}

std::vector<Offer> words_offered(std::string_view words) {
  std::vector<Offer> out;
  for (const auto word : split(words, '|')) {
    if (!word.empty()) out.push_back({std::string(word)});
  }
  return out;
}

/// What a cluster, or the kubeconfig, holds; nothing where it does not answer.
class World {
 public:
  World(const Line& line, Context& context)
      : context_(context),
        groups_(groups_of(line, context)),
        given_(given(line, groups_)),
        flags_(given_, context.getenv, groups_) {}

  std::vector<Offer> offers(Values values, const std::string& partial) {
    switch (values) {
      case Values::kNone: return {};
      case Values::kContexts: return named(kubeconfig().contexts);
      case Values::kClusters: return named(kubeconfig().clusters);
      case Values::kUsers: return named(kubeconfig().users);
      case Values::kNamespaces: return listed(k8s::kNamespaces, "", name_of);
      case Values::kNodes: return listed(k8s::kNodes, "", name_of);
      case Values::kProvisioners:
        return listed(k8s::kStorageClasses, "",
                      [](const nlohmann::json& one) { return text(one, "provisioner"); });
      case Values::kClaims: return claims(partial);
    }
    return {};
  }

 private:
  using Name = std::string (*)(const nlohmann::json&);

  static Given given(const Line& line, std::span<const FlagGroup> groups) {
    auto parsed = parse_flags(line.flags, groups);
    return parsed.ok() ? *std::move(parsed) : Given{};
  }

  static std::string name_of(const nlohmann::json& object) {
    return text(member(object, "metadata"), "name");
  }
  static std::string key_of(const nlohmann::json& object) {
    return text(member(object, "metadata"), "namespace") + "/" + name_of(object);
  }

  static std::vector<Offer> named(const std::vector<std::string>& names) {
    std::vector<Offer> out;
    out.reserve(names.size());
    for (const std::string& name : names) out.push_back({name});
    return out;
  }

  k8s::KubeconfigNames kubeconfig() {
    return context_.kubeconfig_names(knows("kubeconfig") ? flags_.text("kubeconfig") : "");
  }

  bool knows(std::string_view name) const { return find_flag(groups_, name) != nullptr; }

  Cluster* cluster() {
    if (cluster_ == nullptr && knows("kubeconfig")) {
      auto opened = Cluster::open(context_, flags_, kPatience);
      if (opened.ok()) cluster_ = *std::move(opened);
    }
    return cluster_.get();
  }

  std::vector<Offer> listed(const k8s::Resource& resource, const std::string& ns, Name name) {
    if (cluster() == nullptr) return {};
    const bool metadata_only = name == Name(name_of) || name == Name(key_of);
    const auto objects = cluster()->list(resource, ns, {.metadata_only = metadata_only});
    if (!objects.ok()) return {};
    std::vector<std::string> names;
    for (const auto& object : *objects) names.push_back(name(object));
    return named(names);
  }

  /// "name" in the namespace that counts, "ns/name" where another one is begun or all are asked
  /// for.
  std::vector<Offer> claims(const std::string& partial) {
    const auto& kind = k8s::kPersistentVolumeClaims;
    if (cluster() == nullptr) return {};
    const auto slash = partial.find('/');
    if (slash != std::string::npos) return listed(kind, partial.substr(0, slash), key_of);
    if (knows("all-namespaces") && flags_.boolean("all-namespaces")) {
      return listed(kind, "", key_of);
    }
    const bool is_given = knows("namespace") && flags_.given("namespace");
    std::string ns = is_given ? flags_.text("namespace") : cluster()->default_namespace();
    return listed(kind, ns.empty() ? "default" : ns, name_of);
  }

  Context& context_;
  const std::vector<FlagGroup> groups_;
  const Given given_;
  FlagReader flags_;
  std::unique_ptr<Cluster> cluster_{};
};

struct Offers {
  std::vector<Offer> all{};
  std::string prefix{};  // of each: "--flag="
  bool files = false;    // the shell completes file names
};

Offers offers_of_value(const Flag& flag, const std::string& partial, const Line& line,
                       Context& context) {
  if (flag.is_file()) return {.files = true};
  if (!flag.choices.empty()) return {.all = words_offered(flag.choices)};
  return {.all = World(line, context).offers(flag.values, partial)};
}

Offers offers_for(const Line& line, const std::string& last, Context& context) {
  if (line.open != nullptr) return offers_of_value(*line.open, last, line, context);
  if (!line.no_flags && last.starts_with('-')) {
    const auto equals = last.find('=');
    if (equals == std::string::npos) return {.all = flags_offered(line)};
    const auto groups = groups_of(line, context);
    const Flag* const flag = find_flag(groups, flags::flag_name(last).value_or(""));
    if (flag == nullptr) return {};
    Offers out = flag->is_boolean()
                     ? Offers{.all = words_offered("true|false")}
                     : offers_of_value(*flag, last.substr(equals + 1), line, context);
    out.prefix = last.substr(0, equals + 1);
    return out;
  }
  if (line.help)
    return {.all = line.words.empty() ? commands_offered(context) : std::vector<Offer>{}};
  if (line.command == nullptr) {
    return {.all = line.no_flags ? std::vector<Offer>{} : commands_offered(context)};
  }
  if (!line.command->words.empty()) {
    return {.all = line.words.empty() ? words_offered(line.command->words) : std::vector<Offer>{}};
  }
  return {.all = World(line, context).offers(line.command->values, last)};
}

int run_complete(const Given& given, Context& context) {
  std::vector<std::string> before = given.words;
  std::string last;
  if (!before.empty()) {
    last = before.back();
    before.pop_back();
  }
  const Offers offers = offers_for(read_line(before, context), last, context);
  std::set<std::string> shown;
  std::string out;
  for (const Offer& offer : offers.all) {
    const std::string value = offers.prefix + one_line(offer.value);
    if (!value.starts_with(last) || !shown.insert(value).second) continue;
    out += value;
    if (!offer.help.empty()) out.append("\t").append(one_line(offer.help));
    out += '\n';
  }
  // As the programs say it that kubectl asks: 0 = complete files, 4 = do not.
  out += offers.files ? ":0\n" : ":4\n";
  context.out(out);
  return kExitOk;
}

}  // namespace
}  // namespace complete_command

const Command kCompleteCommand{
    .name = "__complete",
    .summary = "say what may stand in the place of the last word",
    .arguments = "-- [WORD...]",
    .text = "Say what may stand in the place of the last word, for shells and kubectl.\n",
    .run = complete_command::run_complete,
    .hidden = true,
};

}  // namespace lpp::cli
