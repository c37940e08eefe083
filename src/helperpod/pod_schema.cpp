// SPDX-License-Identifier: Apache-2.0
#include "helperpod/pod_schema.h"

#include <array>

namespace lpp::helperpod {

namespace {

constexpr Schema kAnything{};
constexpr Schema kText{Kind::kString};
constexpr Schema kFlag{Kind::kBool};
constexpr Schema kNumber{Kind::kInteger};
constexpr Schema kTextMap{Kind::kStringMap};
constexpr Schema kTexts{Kind::kList, {}, &kText};
constexpr Schema kNumbers{Kind::kList, {}, &kNumber};

constexpr std::array kNamedFields{Field{"name", &kText}};
constexpr Schema kNamed{Kind::kObject, kNamedFields};
constexpr Schema kNamedList{Kind::kList, {}, &kNamed};

constexpr std::array kTypedProfileFields{Field{"type", &kText}, Field{"localhostProfile", &kText}};
constexpr Schema kProfile{Kind::kObject, kTypedProfileFields};

constexpr std::array kSeLinuxFields{Field{"user", &kText}, Field{"role", &kText},
                                    Field{"type", &kText}, Field{"level", &kText}};
constexpr Schema kSeLinux{Kind::kObject, kSeLinuxFields};

constexpr std::array kPodSecurityFields{
    Field{"appArmorProfile", &kProfile},
    Field{"fsGroup", &kNumber},
    Field{"fsGroupChangePolicy", &kText},
    Field{"runAsGroup", &kNumber, Rule::kRefuseZero},
    Field{"runAsNonRoot", &kFlag},
    Field{"runAsUser", &kNumber, Rule::kRefuseZero},
    Field{"seLinuxChangePolicy", &kText},
    Field{"seLinuxOptions", &kSeLinux},
    Field{"seccompProfile", &kProfile},
    Field{"supplementalGroups", &kNumbers},
    Field{"supplementalGroupsPolicy", &kText},
    Field{"sysctls", &kAnything, Rule::kRefuse},
    Field{"windowsOptions", &kAnything, Rule::kRefuse},
};
constexpr Schema kPodSecurity{Kind::kObject, kPodSecurityFields};

constexpr std::array kCapabilityFields{Field{"add", &kTexts, Rule::kRefuse},
                                       Field{"drop", &kTexts}};
constexpr Schema kCapabilities{Kind::kObject, kCapabilityFields};

constexpr std::array kContainerSecurityFields{
    Field{"allowPrivilegeEscalation", &kFlag, Rule::kRefuse},
    Field{"appArmorProfile", &kProfile},
    Field{"capabilities", &kCapabilities},
    Field{"privileged", &kFlag, Rule::kRefuse},
    Field{"procMount", &kText, Rule::kRefuse},
    Field{"readOnlyRootFilesystem", &kFlag},
    Field{"runAsGroup", &kNumber},
    Field{"runAsNonRoot", &kFlag},
    Field{"runAsUser", &kNumber},  // root here was always accepted: folders have owners
    Field{"seLinuxOptions", &kSeLinux},
    Field{"seccompProfile", &kProfile},
    Field{"windowsOptions", &kAnything, Rule::kRefuse},
};
constexpr Schema kContainerSecurity{Kind::kObject, kContainerSecurityFields};

constexpr Schema kAmount{Kind::kQuantity};
constexpr std::array kAmountFields{Field{"cpu", &kAmount}, Field{"memory", &kAmount},
                                   Field{"ephemeral-storage", &kAmount}};
constexpr Schema kAmounts{Kind::kObject, kAmountFields};
constexpr std::array kResourceFields{Field{"claims", &kAnything, Rule::kRefuse},
                                     Field{"limits", &kAmounts}, Field{"requests", &kAmounts}};
constexpr Schema kResources{Kind::kObject, kResourceFields};

constexpr std::array kEnvFields{Field{"name", &kText}, Field{"value", &kText},
                                Field{"valueFrom", &kAnything, Rule::kRefuse}};
constexpr Schema kEnv{Kind::kObject, kEnvFields};
constexpr Schema kEnvList{Kind::kList, {}, &kEnv};

constexpr std::array kPortFields{Field{"containerPort", &kNumber}, Field{"name", &kText},
                                 Field{"protocol", &kText}, Field{"hostIP", &kText, Rule::kRefuse},
                                 Field{"hostPort", &kNumber, Rule::kRefuse}};
constexpr Schema kPort{Kind::kObject, kPortFields};
constexpr Schema kPorts{Kind::kList, {}, &kPort};

/// Only read for unsafe templates, where other members are passed on.
constexpr std::array kMountFields{Field{"name", &kText}, Field{"mountPath", &kText}};
constexpr Schema kMount{Kind::kObject, kMountFields};
constexpr Schema kMounts{Kind::kList, {}, &kMount};

constexpr auto container_fields(Rule command) {
  return std::array{
      Field{"args", &kAnything, command},
      Field{"command", &kAnything, command},
      Field{"env", &kEnvList},
      Field{"envFrom", &kAnything, Rule::kRefuse},
      Field{"image", &kText},
      Field{"imagePullPolicy", &kText},
      Field{"lifecycle", &kAnything, Rule::kRefuse},
      Field{"livenessProbe", &kAnything, Rule::kRefuse},
      Field{"name", &kText},
      Field{"ports", &kPorts},
      Field{"readinessProbe", &kAnything, Rule::kRefuse},
      Field{"resizePolicy", &kAnything},
      Field{"resources", &kResources},
      Field{"restartPolicy", &kText, Rule::kRefuse},
      Field{"restartPolicyRules", &kAnything, Rule::kRefuse},
      Field{"securityContext", &kContainerSecurity},
      Field{"startupProbe", &kAnything, Rule::kRefuse},
      Field{"stdin", &kFlag},
      Field{"stdinOnce", &kFlag},
      Field{"terminationMessagePath", &kText},
      Field{"terminationMessagePolicy", &kText},
      Field{"tty", &kFlag},
      Field{"volumeDevices", &kAnything, Rule::kRefuse},
      Field{"volumeMounts", &kMounts, Rule::kRefuse},
      Field{"workingDir", &kText},
  };
}

/// The provisioner says what the first container does; others are only for unsafe templates.
constexpr auto kFirstContainerFields = container_fields(Rule::kReplaced);
constexpr auto kOtherContainerFields = container_fields(Rule::kAllow);
constexpr Schema kFirstContainer{Kind::kObject, kFirstContainerFields};
constexpr Schema kOtherContainer{Kind::kObject, kOtherContainerFields};
constexpr Schema kContainers{Kind::kList, {}, &kFirstContainer, &kOtherContainer};
constexpr Schema kInitContainers{Kind::kList, {}, &kOtherContainer};

constexpr std::array kTolerationFields{
    Field{"effect", &kText}, Field{"key", &kText}, Field{"operator", &kText},
    Field{"tolerationSeconds", &kNumber}, Field{"value", &kText}};
constexpr Schema kToleration{Kind::kObject, kTolerationFields};
constexpr Schema kTolerations{Kind::kList, {}, &kToleration};

constexpr std::array kHostAliasFields{Field{"hostnames", &kTexts}, Field{"ip", &kText}};
constexpr Schema kHostAlias{Kind::kObject, kHostAliasFields};
constexpr Schema kHostAliases{Kind::kList, {}, &kHostAlias};

constexpr Schema kVolumes = kNamedList;

constexpr std::array kSpecFields{
    Field{"activeDeadlineSeconds", &kAnything, Rule::kReplaced},
    Field{"affinity", &kAnything},
    Field{"automountServiceAccountToken", &kFlag},
    Field{"containers", &kContainers},
    Field{"dnsConfig", &kAnything},
    Field{"dnsPolicy", &kText},
    Field{"enableServiceLinks", &kFlag},
    Field{"ephemeralContainers", &kAnything, Rule::kRefuse},
    Field{"hostAliases", &kHostAliases},
    Field{"hostIPC", &kFlag, Rule::kRefuse},
    Field{"hostNetwork", &kFlag, Rule::kRefuse},
    Field{"hostPID", &kFlag, Rule::kRefuse},
    Field{"hostUsers", &kFlag},
    Field{"hostname", &kText},
    Field{"hostnameOverride", &kText},
    Field{"imagePullSecrets", &kNamedList},
    Field{"initContainers", &kInitContainers, Rule::kRefuse},
    Field{"nodeName", &kText, Rule::kRefuse},
    Field{"nodeSelector", &kTextMap},
    Field{"os", &kNamed},
    Field{"overhead", &kAmounts},
    Field{"preemptionPolicy", &kText},
    Field{"priority", &kNumber},
    Field{"priorityClassName", &kText},
    Field{"readinessGates", &kAnything},
    Field{"resourceClaims", &kAnything, Rule::kRefuse},
    Field{"resources", &kResources},
    Field{"restartPolicy", &kText},
    Field{"runtimeClassName", &kText},
    Field{"schedulerName", &kText},
    Field{"schedulingGates", &kAnything, Rule::kRefuse},
    Field{"securityContext", &kPodSecurity},
    Field{"serviceAccount", &kText, Rule::kRefuse},
    Field{"serviceAccountName", &kText, Rule::kRefuse},
    Field{"setHostnameAsFQDN", &kFlag},
    Field{"shareProcessNamespace", &kFlag},
    Field{"subdomain", &kText},
    Field{"terminationGracePeriodSeconds", &kNumber},
    Field{"tolerations", &kTolerations},
    Field{"topologySpreadConstraints", &kAnything},
    Field{"volumes", &kVolumes, Rule::kRefuse},
};
constexpr Schema kSpec{Kind::kObject, kSpecFields};

constexpr std::array kMetaFields{
    Field{"annotations", &kTextMap},
    Field{"creationTimestamp", &kAnything, Rule::kDropped},
    Field{"deletionGracePeriodSeconds", &kAnything, Rule::kDropped},
    Field{"deletionTimestamp", &kAnything, Rule::kDropped},
    Field{"finalizers", &kTexts, Rule::kRefuse},
    Field{"generateName", &kAnything, Rule::kDropped},
    Field{"generation", &kAnything, Rule::kDropped},
    Field{"labels", &kTextMap},
    Field{"managedFields", &kAnything, Rule::kDropped},
    Field{"name", &kText},
    Field{"namespace", &kAnything, Rule::kDropped},  // always the provisioner's own
    Field{"ownerReferences", &kAnything, Rule::kRefuse},
    Field{"resourceVersion", &kAnything, Rule::kDropped},
    Field{"selfLink", &kAnything, Rule::kDropped},
    Field{"uid", &kAnything, Rule::kDropped},
};
constexpr Schema kMeta{Kind::kObject, kMetaFields};

constexpr std::array kTopFields{
    Field{"apiVersion", &kText},
    Field{"kind", &kText},
    Field{"metadata", &kMeta},
    Field{"spec", &kSpec},
    Field{"status", &kAnything, Rule::kDropped},
};

}  // namespace

constinit const Schema kPodSchema{Kind::kObject, kTopFields};

}  // namespace lpp::helperpod
