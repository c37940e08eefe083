{{/* What the schema cannot say: values that cannot work together, each with a way out. */}}
{{- define "local-path-provisioner.validate" -}}
{{- $namespace := include "local-path-provisioner.namespace" . -}}
{{- $helperNamespace := include "local-path-provisioner.helperNamespace" . -}}

{{- if and (gt (int .Values.replicaCount) 1) (not .Values.leaderElection.enabled) -}}
{{- fail "replicaCount above 1 needs leaderElection.enabled: true" -}}
{{- end -}}
{{- if and .Values.namespace.create (eq $namespace .Release.Namespace) -}}
{{- fail (printf "namespace.create: Helm's own namespace %q exists already; set namespaceOverride to another, or label this one: kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged" $namespace $namespace) -}}
{{- end -}}
{{- if eq .Values.helperNamespace.name $namespace -}}
{{- fail "helperNamespace.name: that is the provisioner's own namespace; leave it empty" -}}
{{- end -}}
{{- with .Values.configmap.helperPod.namespaceOverride -}}
{{- if ne . $helperNamespace -}}
{{- fail (printf "configmap.helperPod.namespaceOverride: helper pods run in namespace %q; leave it empty, and name another one in helperNamespace.name" $helperNamespace) -}}
{{- end -}}
{{- end -}}

{{- $registry := .Values.privateRegistry -}}
{{- $login := or $registry.registryUser $registry.registryPasswd -}}
{{- if or $login .Values.defaultSettings.registrySecret -}}
{{- if not (and $registry.registryUrl $registry.registryUser $registry.registryPasswd .Values.defaultSettings.registrySecret) -}}
{{- fail "the Secret for a private registry needs privateRegistry.registryUrl, .registryUser, .registryPasswd and its name in defaultSettings.registrySecret; name a Secret that exists in imagePullSecrets instead" -}}
{{- end -}}
{{- end -}}

{{- if and .Values.podDisruptionBudget.minAvailable .Values.podDisruptionBudget.maxUnavailable -}}
{{- fail "podDisruptionBudget: only one of minAvailable and maxUnavailable can be set" -}}
{{- end -}}
{{- if hasKey .Values.configmap.helperPod.spec "containers" -}}
{{- fail "configmap.helperPod.spec: the container is changed with configmap.helperPod.container" -}}
{{- end -}}

{{- if and .Values.agents.enabled .Values.helperNamespace.name -}}
{{- fail "agents.enabled: agents and their provisioner are in one namespace; leave helperNamespace.name empty" -}}
{{- end -}}
{{- include "local-path-provisioner.validateQuota" . -}}
{{- include "local-path-provisioner.validatePaths" (dict "where" "" "config" .Values) -}}
{{- $top := include "local-path-provisioner.paths" .Values | fromJson -}}
{{- range $name, $config := .Values.storageClassConfigs -}}
{{- include "local-path-provisioner.validatePaths" (dict "where" (printf "storageClassConfigs.%s." $name) "config" $config) -}}
{{- if not (or $top (include "local-path-provisioner.paths" $config | fromJson)) -}}
{{- fail (printf "storageClassConfigs.%s needs nodePathMap or sharedFileSystemPath, or a nodePathMap for all classes" $name) -}}
{{- end -}}
{{- end -}}
{{- if not (or $top .Values.storageClassConfigs) -}}
{{- fail "nodePathMap is empty: set it, or sharedFileSystemPath, or storageClassConfigs" -}}
{{- end -}}

{{- $root := . -}}
{{- range $name, $config := include "local-path-provisioner.classes" . | fromJson -}}
{{- $class := $config.storageClass -}}
{{- $paths := include "local-path-provisioner.paths" $config | fromJson | default $top -}}
{{- if and $class.mountOptions (ne (default "hostPath" $class.defaultVolumeType | lower) "local") -}}
{{- fail (printf "StorageClass %s: mountOptions need defaultVolumeType local; hostPath volumes have none, and the claims would be refused" $name) -}}
{{- end -}}
{{- if not $paths.sharedFileSystemPath -}}
{{- if eq (default "" $class.volumeBindingMode) "Immediate" -}}
{{- fail (printf "StorageClass %s: volumeBindingMode Immediate works with sharedFileSystemPath only; paths of nodes need WaitForFirstConsumer" $name) -}}
{{- end -}}
{{- else -}}
{{- if eq (default "" $class.defaultVolumeType | lower) "local" -}}
{{- fail (printf "StorageClass %s: defaultVolumeType local belongs to one node; sharedFileSystemPath needs hostPath" $name) -}}
{{- end -}}
{{- with $class.nodePath -}}
{{- fail (printf "StorageClass %s: nodePath chooses among the paths of a nodePathMap, and sharedFileSystemPath has one only" $name) -}}
{{- end -}}
{{- with $class.nodeAffinityKey -}}
{{- fail (printf "StorageClass %s: volumes of sharedFileSystemPath have no node affinity; leave nodeAffinityKey empty" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "local-path-provisioner.validatePaths" -}}
{{- if and .config.nodePathMap .config.sharedFileSystemPath -}}
{{- fail (printf "%ssharedFileSystemPath and %snodePathMap exclude each other: set one of them, and nodePathMap: [] beside sharedFileSystemPath" .where .where) -}}
{{- end -}}
{{- end -}}

{{- define "local-path-provisioner.validateQuota" -}}
{{- if .Values.quota.enabled -}}
{{- $name := .Values.quota.storageClass.name -}}
{{- $others := include "local-path-provisioner.classes" (dict "Values" (mergeOverwrite (deepCopy (.Values | toJson | fromJson)) (dict "quota" (dict "enabled" false)))) | fromJson -}}
{{- if hasKey $others $name -}}
{{- fail (printf "quota.storageClass.name: there is another class %s; choose another name" $name) -}}
{{- end -}}
{{- $config := get (.Values.storageClassConfigs | default dict) $name | default dict -}}
{{- if not (or .Values.nodePathMap $config.nodePathMap) -}}
{{- fail (printf "quota.enabled: StorageClass %s needs paths of nodes: a nodePathMap, or storageClassConfigs.%s.nodePathMap; a shared filesystem has no project quota" $name $name) -}}
{{- end -}}
{{- range list "setupCommand" "teardownCommand" "resizeCommand" -}}
{{- if get $.Values . -}}
{{- fail (printf "quota.enabled sets %s itself; leave it empty" .) -}}
{{- end -}}
{{- end -}}
{{- range list "setup" "teardown" "resize" -}}
{{- if get $.Values.configmap . -}}
{{- fail (printf "quota.enabled: configmap.%s would not be run; leave it empty" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
