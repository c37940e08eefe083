// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "k8s/base64.h"
#include "k8s/proxy.h"
#include "k8s/rest_config.h"
#include "k8s/server_url.h"
#include "k8s/tls_context.h"

namespace lpp::k8s {

namespace {

/// Reads fields of one YAML map and remembers the first thing that is wrong, with its place. After
/// an error it only returns empty values, so that one check at the end is enough.
class ConfigFields {
 public:
  ConfigFields(const YAML::Node& node, std::string place, std::optional<Error>& error)
      : node_(node), place_(std::move(place)), error_(error) {
    if (node_ && !node_.IsNull() && !node_.IsMap()) fail("", "must be a map");
  }

  bool has(const char* key) const { return !get(key).IsNull(); }

  /// Any scalar; "" when absent or null.
  std::string text(const char* key) {
    const YAML::Node node = get(key);
    if (node.IsNull()) return {};
    if (!node.IsScalar()) {
      fail(key, "must be a string");
      return {};
    }
    return node.Scalar();
  }

  /// Text that is sent as an HTTP header: it must not be able to begin another one.
  std::string header_text(const char* key) {
    std::string value = text(key);
    check_header(key, value);
    return value;
  }

  std::vector<std::string> header_texts(const char* key) {
    std::vector<std::string> values = texts(key);
    for (const auto& value : values) check_header(key, value);
    return values;
  }

  bool flag(const char* key) {
    const std::string value = text(key);
    if (value.empty() || value == "false") return false;
    if (value != "true") fail(key, "must be true or false");
    return value == "true";
  }

  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> values;
    const YAML::Node node = get(key);
    if (node.IsNull()) return values;
    if (!node.IsSequence()) fail(key, "must be a list of strings");
    for (std::size_t i = 0; node.IsSequence() && i < node.size(); ++i) {
      if (!node[i].IsScalar())
        fail(key, "must be a list of strings");
      else
        values.push_back(node[i].Scalar());
    }
    return values;
  }

  ConfigFields child(const char* key) { return {get(key), place_of(key), error_}; }
  YAML::Node get(const char* key) const {
    if (error_ || !node_ || !node_.IsMap()) return YAML::Node();
    const YAML::Node found = node_[key];
    return found ? found : YAML::Node();
  }

  void fail(const std::string& key, const std::string& what) {
    if (!error_) error_ = invalid(place_of(key) + ": " + what);
  }

  std::string place_of(const std::string& key) const {
    if (key.empty()) return place_.empty() ? "the document" : place_;
    return place_.empty() ? key : place_ + "." + key;
  }

 private:
  void check_header(const char* key, std::string_view value) {
    const bool good = std::all_of(value.begin(), value.end(),
                                  [](unsigned char c) { return c >= ' ' && c != 0x7f; });
    if (!good) fail(key, "must not hold line breaks or other control characters");
  }

  YAML::Node node_;
  std::string place_;
  std::optional<Error>& error_;
};

/// One file, and the folder that its paths are relative to.
struct Document {
  std::string file{};
  std::filesystem::path folder{};
  YAML::Node root{};
};

/// All files as one. Remembers which of them the first error is in.
class Documents {
 public:
  explicit Documents(std::vector<Document> all) : all_(std::move(all)) {}

  /// The first error, with its file in front.
  std::optional<Error> error() const {
    if (!error_) return std::nullopt;
    return Error(*error_).wrap("kubeconfig " + file_);
  }

  std::string current_context() {
    bool anything = false;
    for (const Document& document : all_) {
      ConfigFields root = fields(document);
      if (std::string name = root.text("current-context"); error_ || !name.empty()) return name;
      anything = anything || root.has("contexts") || root.has("clusters");
    }
    fail_everywhere("current-context", anything
                                           ? "is missing: it must name one of the contexts"
                                           : "is missing: there is no configuration in this file");
    return {};
  }

  /// The part `inner` of the first entry called `name` in a list of named entries such as clusters.
  struct Entry {
    ConfigFields fields;
    const Document* document;
  };
  Entry entry(const char* list, const char* inner, const std::string& name) {
    std::string known;
    for (const Document& document : all_) {
      ConfigFields root = fields(document);
      const YAML::Node entries = root.get(list);
      if (!entries.IsNull() && !entries.IsSequence()) root.fail(list, "must be a list");
      for (std::size_t i = 0; !error_ && entries.IsSequence() && i < entries.size(); ++i) {
        ConfigFields entry(entries[i], fmt::format("{}[{}]", list, i), error_);
        const std::string entry_name = entry.text("name");
        if (entry_name == name) {
          const std::string place = fmt::format("{}[name={}].{}", list, name, inner);
          return {{entry.get(inner), place, error_}, &document};
        }
        known += (known.empty() ? "" : ", ") + log::quoted(entry_name);
      }
      if (error_) break;
    }
    fail_everywhere(list, fmt::format("there is no entry named {} (there {})", log::quoted(name),
                                      known.empty() ? "is none at all" : "is: " + known));
    return {{YAML::Node(), list, error_}, &all_.front()};
  }

  /// What is read next belongs to that file.
  void reading(const Document& document) {
    if (!error_) file_ = document.file;
  }

  bool failed() const { return error_.has_value(); }

 private:
  ConfigFields fields(const Document& document) {
    reading(document);
    return {document.root, "", error_};
  }

  void fail_everywhere(const char* key, const std::string& what) {
    if (error_) return;
    file_.clear();
    for (const Document& document : all_) file_ += (file_.empty() ? "" : ":") + document.file;
    error_ = invalid(fmt::format("{}: {}", key, what));
  }

  std::vector<Document> all_;
  std::string file_{};
  std::optional<Error> error_{};
};

/// "key" (a file name, relative to the kubeconfig's folder) or "key-data" (base64).
FileOrData file_or_data(ConfigFields& fields, const char* key,
                        const std::filesystem::path& folder) {
  FileOrData result;
  const std::string data_key = std::string(key) + "-data";
  const std::string file = fields.text(key);
  const std::string data = fields.text(data_key.c_str());
  if (!file.empty() && !data.empty()) {
    fields.fail(key, "must not be given together with " + data_key);
    return result;
  }
  if (!file.empty()) result.file = (folder / file).lexically_normal().string();
  if (!data.empty()) {
    auto bytes = base64_decode(data);
    if (!bytes || bytes->empty())
      fields.fail(data_key, "is not base64");
    else
      result.data = *std::move(bytes);
  }
  return result;
}

void read_server(ConfigFields& cluster, RestConfig& config) {
  const std::string server = cluster.text("server");
  if (server.empty()) {
    cluster.fail("server", "is missing: it must be the API server's URL");
    return;
  }
  const auto url = parse_url(server);
  if (!url.ok()) {
    cluster.fail("server", "is not a URL: " + url.error().message);
    return;
  }
  if (!url->user_info.empty()) {
    cluster.fail("server", "must not hold a user name (use the users list)");
  }
  if (!url->scheme.empty() && url->scheme != "https" && url->scheme != "http") {
    cluster.fail("server", "must begin with https:// or http://");
  }
  // As in client-go, a bare host is https when something about TLS is said.
  const bool tls_wanted =
      !config.ca.empty() || config.insecure_skip_tls_verify || !config.client_certificate.empty();
  config.https = url->scheme.empty() ? tls_wanted : url->scheme == "https";
  config.host = url->host;
  config.port = url->port.value_or(config.https ? 443 : 80);
  config.base_path = url->path;
}

void read_cluster(ConfigFields& cluster, const std::filesystem::path& folder, RestConfig& config) {
  config.ca = file_or_data(cluster, "certificate-authority", folder);
  config.insecure_skip_tls_verify = cluster.flag("insecure-skip-tls-verify");
  if (config.insecure_skip_tls_verify && !config.ca.empty()) {
    cluster.fail("insecure-skip-tls-verify",
                 "must not be true when a certificate-authority is given: remove one of them");
  }
  config.tls_server_name = cluster.text("tls-server-name");
  config.proxy_url = cluster.text("proxy-url");
  if (!config.proxy_url.empty()) {
    const auto proxy = parse_proxy_url(config.proxy_url);
    if (!proxy.ok()) cluster.fail("proxy-url", proxy.error().message);
  }
}

void read_exec(ConfigFields exec, const std::filesystem::path& folder, RestConfig& config) {
  ExecPlugin plugin;
  plugin.api_version = exec.text("apiVersion");
  constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";
  constexpr std::string_view kV1Beta1 = "client.authentication.k8s.io/v1beta1";
  if (plugin.api_version != kV1 && plugin.api_version != kV1Beta1) {
    exec.fail("apiVersion", fmt::format("must be {} or {}", kV1, kV1Beta1));
  }
  plugin.command = exec.text("command");
  if (plugin.command.empty()) exec.fail("command", "is missing");
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = (folder / plugin.command).lexically_normal().string();
  }
  plugin.args = exec.texts("args");
  plugin.install_hint = exec.text("installHint");
  plugin.provide_cluster_info = exec.flag("provideClusterInfo");
  plugin.interactive_mode = exec.text("interactiveMode");
  if (plugin.interactive_mode.empty() && plugin.api_version == kV1Beta1) {
    plugin.interactive_mode = "IfAvailable";
  }
  if (plugin.interactive_mode == "Always") {
    exec.fail("interactiveMode", "is Always, but a daemon has no terminal to ask at");
  } else if (plugin.interactive_mode != "Never" && plugin.interactive_mode != "IfAvailable") {
    exec.fail("interactiveMode", "must be Never or IfAvailable");
  }
  const YAML::Node env = exec.get("env");
  if (!env.IsNull() && !env.IsSequence()) exec.fail("env", "must be a list");
  for (std::size_t i = 0; env.IsSequence() && i < env.size(); ++i) {
    std::optional<Error> problem;
    ConfigFields variable(env[i], exec.place_of(fmt::format("env[{}]", i)), problem);
    plugin.env.emplace_back(variable.text("name"), variable.text("value"));
    if (problem) exec.fail("env", problem->message);
    const auto& name = plugin.env.back().first;
    if (name.empty() || name.find('=') != std::string::npos) {
      exec.fail(fmt::format("env[{}].name", i), "must be the name of a variable");
    }
  }
  config.exec = std::move(plugin);
}

void read_impersonation(ConfigFields& user, RestConfig& config) {
  config.impersonate.user = user.header_text("as");
  config.impersonate.uid = user.header_text("as-uid");
  config.impersonate.groups = user.header_texts("as-groups");
  const YAML::Node extra = user.get("as-user-extra");
  if (!extra.IsNull() && !extra.IsMap()) user.fail("as-user-extra", "must be a map of lists");
  ConfigFields lists = user.child("as-user-extra");
  for (auto it = extra.begin(); extra.IsMap() && it != extra.end(); ++it) {
    if (!it->first.IsScalar()) {
      user.fail("as-user-extra", "must have strings as keys");
      return;
    }
    const std::string key = it->first.Scalar();
    for (auto& value : lists.header_texts(key.c_str())) {
      config.impersonate.extra.emplace_back(key, std::move(value));
    }
  }
  const bool others = !config.impersonate.uid.empty() || !config.impersonate.groups.empty() ||
                      !config.impersonate.extra.empty();
  if (others && config.impersonate.user.empty()) {
    user.fail("as", "is missing: as-uid, as-groups and as-user-extra need a user name");
  }
}

void read_user(ConfigFields& user, const std::filesystem::path& folder, RestConfig& config) {
  if (user.has("auth-provider")) {
    user.fail("auth-provider",
              "auth providers were removed from Kubernetes: use an exec plugin instead");
  }
  config.client_certificate = file_or_data(user, "client-certificate", folder);
  config.client_key = file_or_data(user, "client-key", folder);
  if (config.client_certificate.empty() != config.client_key.empty()) {
    const bool no_key = config.client_key.empty();
    user.fail(no_key ? "client-key" : "client-certificate",
              no_key ? "is missing: a client-certificate needs its key (client-key or "
                       "client-key-data)"
                     : "is missing: a client-key needs its certificate (client-certificate or "
                       "client-certificate-data)");
  }
  config.token = user.header_text("token");
  const std::string token_file = user.text("tokenFile");
  if (!token_file.empty()) config.token_file = (folder / token_file).lexically_normal().string();
  config.username = user.text("username");
  config.password = user.text("password");
  if (!config.username.empty() && (!config.token.empty() || !config.token_file.empty())) {
    user.fail("username", "must not be given together with a token: remove one of them");
  }
  if (config.username.empty() && !config.password.empty()) {
    user.fail("username", "is missing: a password needs it");
  }
  if (user.has("exec")) read_exec(user.child("exec"), folder, config);
  read_impersonation(user, config);
}

void read_documents(Documents& documents, const KubeconfigChoice& choice, RestConfig& config) {
  std::string cluster_name = choice.cluster;
  std::string user_name = choice.user;
  std::string name = choice.context;
  // Cluster and user may be chosen where no context is set, as with kubectl.
  if (name.empty() && cluster_name.empty()) name = documents.current_context();
  if (documents.failed()) return;
  if (!name.empty()) {
    auto [context, document] = documents.entry("contexts", "context", name);
    if (cluster_name.empty()) cluster_name = context.text("cluster");
    if (user_name.empty()) user_name = context.text("user");
    config.default_namespace = context.text("namespace");
    if (cluster_name.empty()) {
      context.fail("cluster", "is missing: it must name one of the clusters");
    }
    if (documents.failed()) return;
    config.source = fmt::format("kubeconfig {}, context {}", document->file, name);
  }
  auto [cluster, document] = documents.entry("clusters", "cluster", cluster_name);
  read_cluster(cluster, document->folder, config);
  if (config.source.empty()) {
    config.source = fmt::format("kubeconfig {}, cluster {}", document->file, cluster_name);
  }
  // A context without a user is anonymous, as in client-go.
  if (!user_name.empty()) {
    auto [user, users_document] = documents.entry("users", "user", user_name);
    read_user(user, users_document->folder, config);
  }
  documents.reading(*document);
  read_server(cluster, config);
}

Result<std::vector<Document>> read_files(const std::vector<std::string>& files) {
  std::vector<Document> out;
  for (const std::string& file : files) {
    LPP_ASSIGN_OR_RETURN(const std::string text, read_small_file(file), "kubeconfig");
    try {
      std::error_code ignored;
      out.push_back({.file = file,
                     .folder = std::filesystem::absolute(file, ignored).parent_path(),
                     .root = YAML::Load(text)});
    } catch (const std::exception& e) {  // yaml-cpp reports by exception
      return invalid(fmt::format("kubeconfig {}: {}", file, e.what()));
    }
  }
  return out;
}

std::vector<std::string> names_in(const std::vector<Document>& documents, const char* list) {
  std::vector<std::string> out;
  for (const Document& document : documents) {
    std::optional<Error> ignored;
    const YAML::Node entries = ConfigFields(document.root, "", ignored).get(list);
    for (std::size_t i = 0; entries.IsSequence() && i < entries.size(); ++i) {
      std::string name = ConfigFields(entries[i], "", ignored).text("name");
      if (!name.empty()) out.push_back(std::move(name));
    }
  }
  return out;
}

}  // namespace

Result<RestConfig> load_kubeconfig(const std::string& file, std::string_view context) {
  return load_kubeconfigs({file}, {.context = std::string(context)});
}

Result<RestConfig> load_kubeconfigs(const std::vector<std::string>& files,
                                    const KubeconfigChoice& choice) {
  auto read = read_files(files);
  if (!read.ok()) return std::move(read).error();
  Documents documents(*std::move(read));
  RestConfig config;
  try {
    read_documents(documents, choice, config);
  } catch (const std::exception& e) {  // yaml-cpp reports by exception
    return invalid(fmt::format("kubeconfig {}: {}", files.front(), e.what()));
  }
  if (auto error = documents.error()) return *std::move(error);
  return config;
}

KubeconfigNames read_kubeconfig_names(const std::vector<std::string>& files) {
  KubeconfigNames out;
  for (const std::string& file : files) {
    const auto read = read_files({file});
    if (!read.ok()) continue;
    try {
      const auto add = [&](std::vector<std::string>& to, const char* list) {
        const auto names = names_in(*read, list);
        to.insert(to.end(), names.begin(), names.end());
      };
      add(out.contexts, "contexts");
      add(out.clusters, "clusters");
      add(out.users, "users");
    } catch (const std::exception& e) {  // yaml-cpp reports by exception
      log::debug("kubeconfig {}: {}", file, e.what());
    }
  }
  return out;
}

}  // namespace lpp::k8s
