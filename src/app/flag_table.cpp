// SPDX-License-Identifier: Apache-2.0
#include "app/flag_table.h"

#include <array>

namespace lpp::app {

namespace {

using cli::Flag;
using cli::FlagGroup;

constexpr std::array kConfiguration = {
    Flag{.name = "config",
         .placeholder = "FILE",
         .fallback_note = "key config.json of the ConfigMap",
         .help = "directories and scripts: a file if the value ends in .json, else the JSON text "
                 "itself"},
    Flag{.name = "configmap-name",
         .placeholder = "NAME",
         .fallback = "local-path-config",
         .help = "ConfigMap with the scripts for the helper pods"},
    Flag{.name = "helper-pod-file",
         .placeholder = "FILE",
         .fallback_note = "key helperPod.yaml of the ConfigMap",
         .help = "template of the helper pods"},
    Flag{.name = "helper-image",
         .placeholder = "IMAGE",
         .env = "HELPER_IMAGE",
         .fallback = "rancher/library-busybox:1.32.1",
         .help = "image of the helper pods where the template names none"},
    Flag{.name = "allow-unsafe-helper-pod-template",
         .env = "ALLOW_UNSAFE_HELPER_POD_TEMPLATE",
         .fallback = "false",
         .help = "accept any field in the template of the helper pods"},
};

constexpr std::array kIdentity = {
    Flag{.name = "provisioner-name",
         .placeholder = "NAME",
         .env = "PROVISIONER_NAME",
         .fallback = "rancher.io/local-path",
         .help = "serve the StorageClasses that name this provisioner"},
    Flag{.name = "capacity-provisioner-name",
         .placeholder = "NAME",
         .env = "CAPACITY_PROVISIONER_NAME",
         .fallback_note = "none",
         .help = "serve the StorageClasses that name this one, too, and tell the scheduler the "
                 "free space of their nodes; a name without a slash, of at most 63 characters"},
    Flag{.name = "namespace",
         .placeholder = "NAME",
         .env = "POD_NAMESPACE",
         .fallback = "local-path-storage",
         .help = "namespace of the daemon, its ConfigMap and the helper pods"},
    Flag{.name = "service-account-name",
         .placeholder = "NAME",
         .env = "SERVICE_ACCOUNT_NAME",
         .fallback = "local-path-provisioner-service-account",
         .help = "service account of the helper pods"},
};

constexpr std::array kApiServer = {
    Flag{.name = "kubeconfig",
         .placeholder = "FILE",
         .fallback_note = "first file of $KUBECONFIG, in-cluster, ~/.kube/config",
         .help = "how to reach the API server"},
    Flag{.name = "kube-client-qps",
         .placeholder = "NUMBER",
         .fallback_note = "no limit; 5 if only the burst is given",
         .help = "API calls per second; 0 or less = no limit"},
    Flag{.name = "kube-client-burst",
         .placeholder = "COUNT",
         .fallback_note = "10 if only the rate is given",
         .help = "API calls at once"},
};

constexpr std::array kWork = {
    Flag{.name = "worker-threads",
         .placeholder = "COUNT",
         .fallback = "16",
         .help = "claims worked on at once, and as many volumes; none of them waits for a pod"},
    Flag{.name = "helper-pods-per-node",
         .placeholder = "COUNT",
         .fallback = "50",
         .help =
             "helper pods at work on one node at once, at most 4 of 5 for claims and as many for "
             "removals; the others wait; 0 = no limit"},
    Flag{.name = "bind-claims",
         .fallback = "true",
         .help = "bind claims to the volumes made for them, and mark volumes released whose claim "
                 "is gone; =false leaves that to the control plane's binder"},
    Flag{.name = "provisioning-retry-count",
         .placeholder = "COUNT",
         .fallback = "15",
         .help = "retries of a failed provisioning; 0 = for ever"},
    Flag{.name = "deletion-retry-count",
         .placeholder = "COUNT",
         .fallback = "15",
         .help = "retries of a failed deletion; 0 = for ever"},
};

constexpr std::array kAgents = {
    Flag{.name = "agents",
         .env = "AGENTS",
         .fallback = "false",
         .help = "let agents on the nodes work where they are connected; helper pods elsewhere"},
    Flag{.name = "agents-port",
         .placeholder = "PORT",
         .fallback = "8443",
         .help = "port at which agents are served (HTTPS); 0 = any free one"},
    Flag{.name = "agents-service",
         .placeholder = "NAME",
         .fallback = "local-path-provisioner-agents",
         .help = "Service under which agents reach this port, for the server's certificate; the "
                 "Secret NAME-tls and "
                 "the ConfigMap NAME-ca hold it"},
    Flag{.name = "agents-service-account",
         .placeholder = "NAME",
         .fallback = "local-path-provisioner-agent",
         .help = "service account of the agents; nobody else is served"},
};

constexpr Flag kLogLevel{
    .name = "log-level",
    .placeholder = "LEVEL",
    .fallback = "info",
    .help =
        "what is logged: error (you must act), warn (it is tried again), info (volumes "
        "come and go), debug (each step); SIGUSR2 switches debug on and off",
    .choices = "debug|info|warn|error"};

constexpr Flag kLogFormat{.name = "log-format",
                          .placeholder = "FORMAT",
                          .fallback = "text",
                          .help = "how it is written",
                          .choices = "text|json"};

constexpr std::array kMonitoring = {
    kLogLevel,
    kLogFormat,
    Flag{.name = "health-port",
         .placeholder = "PORT",
         .env = "HEALTH_PORT",
         .fallback = "8080",
         .help = "port of the probes, /metrics, /usage, /orphans and /statusz; 0 = any free one"},
    Flag{.name = "metrics",
         .fallback = "true",
         .help = "tell Prometheus what is going on, at /metrics of the health port; and `volumes` "
                 "how full volumes are, at /usage, and which directories are nobody's, at "
                 "/orphans"},
    Flag{.name = "statusz",
         .fallback = "true",
         .help = "show people what is going on, at /statusz of the health port"},
};

constexpr std::array kLeaderElection = {
    Flag{.name = "leader-elect",
         .fallback = "false",
         .help = "work only while holding the lease, so that several replicas may run"},
    Flag{.name = "leader-elect-lease-duration",
         .placeholder = "DURATION",
         .fallback = "15s",
         .help = "how long others wait for a holder that is gone"},
    Flag{.name = "leader-elect-renew-deadline",
         .placeholder = "DURATION",
         .fallback = "10s",
         .help = "how long the holder tries to renew before it stops working"},
    Flag{.name = "leader-elect-retry-period",
         .placeholder = "DURATION",
         .fallback = "2s",
         .help = "time between attempts"},
    Flag{.name = "leader-elect-resource-name",
         .placeholder = "NAME",
         .fallback_note = "the provisioner's name with - for /",
         .help = "name of the lease"},
    Flag{.name = "leader-elect-resource-namespace",
         .placeholder = "NAME",
         .fallback_note = "--namespace",
         .help = "namespace of the lease"},
};

constexpr std::array kStartGroups = {
    FlagGroup{"Configuration", kConfiguration},
    FlagGroup{"Identity", kIdentity},
    FlagGroup{"API server", kApiServer},
    FlagGroup{"Work", kWork},
    FlagGroup{"Node agents", kAgents},
    FlagGroup{"Monitoring", kMonitoring},
    FlagGroup{"Leader election", kLeaderElection},
};

constexpr cli::Command kStart{
    .name = "start",
    .summary = "serve claims until stopped; `local-path-provisioner start --help` lists its flags",
    .text =
        "Serve claims: make a directory and a PersistentVolume for each, and remove both again.\n"
        "\n"
        "Examples:\n"
        "  # in a pod, as deploy/local-path-storage.yaml does\n"
        "  local-path-provisioner start --config /etc/config/config.json\n"
        "\n"
        "  # on your own machine, with the configuration and the scripts from the cluster's "
        "ConfigMap\n"
        "  local-path-provisioner --debug start --kubeconfig ~/.kube/config --health-port 0\n"
        "\n"
        "A flag wins over its [$VARIABLE], that over the default. -flag, --flag, --flag VALUE and\n"
        "--flag=VALUE are accepted; a flag without a VALUE is switched off by --flag=false.\n"
        "Durations are written like 15s or 1m30s.\n",
    .flags = kStartGroups,
};

constexpr std::array kAgentController = {
    Flag{.name = "controller",
         .placeholder = "URL[,URL...]",
         .fallback_note = "https://local-path-provisioner-agents.NAMESPACE.svc:8443",
         .help = "where the controller is; of a host with several addresses all are tried"},
    Flag{.name = "namespace",
         .placeholder = "NAME",
         .env = "POD_NAMESPACE",
         .fallback = "local-path-storage",
         .help = "namespace of the controller, where --controller does not say"},
    Flag{.name = "ca-file",
         .placeholder = "FILE",
         .fallback = "/etc/local-path-provisioner/agents-ca/ca.crt",
         .help = "certificates that the controller's must come from; read again when it changes"},
    Flag{.name = "token-file",
         .placeholder = "FILE",
         .fallback = "/var/run/secrets/local-path-provisioner/token",
         .help = "token of the agent's pod, made for the audience local-path-provisioner-agent; "
                 "read again when it changes"},
};

constexpr std::array kAgentNode = {
    Flag{.name = "root",
         .placeholder = "DIR",
         .fallback = "/",
         .help = "where the node's file system is: base paths are looked for below it"},
    Flag{.name = "usage-interval",
         .placeholder = "DURATION",
         .fallback = "1m",
         .help = "time between two looks at what the base paths hold, and each volume with a limit "
                 "takes up; 0 = how much volumes take up is not told, and the look is every "
                 "minute"},
    Flag{
        .name = "sweep-after",
        .placeholder = "DURATION",
        .fallback = "1h",
        .help =
            "the empty directory or the record that an interrupted make or removal has left, and a "
            "record whose directory is gone, go after so long if the controller knows nobody who "
            "needs them; 0 = they stay"},
    Flag{.name = "node-name",
         .placeholder = "NAME",
         .env = "NODE_NAME",
         .help = "for the log only: the controller knows the node from the token"},
};

constexpr std::array kAgentMonitoring = {
    kLogLevel,
    kLogFormat,
    Flag{.name = "health-port",
         .placeholder = "PORT",
         .fallback = "0",
         .help =
             "port of the probes /healthz and /readyz (is there a session?) and of /metrics; 0 = "
             "none"},
    Flag{.name = "health-address",
         .placeholder = "ADDRESS",
         .help = "where the health port is open: an address of the pod, or 127.0.0.1 for nobody "
                 "outside of it; without it on all addresses"},
};

constexpr std::array kAgentGroups = {FlagGroup{"Controller", kAgentController},
                                     FlagGroup{"Node", kAgentNode},
                                     FlagGroup{"Monitoring", kAgentMonitoring}};

constexpr cli::Command kAgent{
    .name = "agent",
    .summary = "work on this node's directories until stopped, as the controller orders",
    .text =
        "Work on this node's directories, as the controller orders: the opt-in alternative to a "
        "pod for\n"
        "each directory. One runs on each node and asks the controller for work, over HTTPS;\n"
        "nobody connects to it, and it needs no permissions in the cluster.\n"
        "\n"
        "  its base paths  come from the controller's configuration. Each must be mounted at its "
        "own path:\n"
        "                  of one that is not, the controller is told so, and sends helper pods\n"
        "  its records     lie on each base path's own disk, in .local-path-provisioner: what has "
        "begun\n"
        "                  is known after a restart, and goes on when the controller says so\n"
        "  SIGTERM         ends it after makes that run; a removal stops, and goes on another "
        "time\n"
        "\n"
        "Examples:\n"
        "  # in a pod of a DaemonSet\n"
        "  local-path-provisioner agent\n"
        "\n"
        "  # beside a node, to look into it\n"
        "  local-path-provisioner --debug agent --controller https://localhost:8443 --ca-file "
        "ca.crt \\\n"
        "    --token-file token --root /mnt/node\n",
    .flags = kAgentGroups,
};

}  // namespace

const cli::Command& start_command() { return kStart; }
const cli::Command& agent_command() { return kAgent; }

std::vector<const cli::Command*> all_commands() {
  std::vector<const cli::Command*> all{&kStart, &kAgent};
  for (const cli::Command& command : cli::commands()) all.push_back(&command);
  return all;
}

}  // namespace lpp::app
