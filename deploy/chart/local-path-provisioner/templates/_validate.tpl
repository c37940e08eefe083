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
{{- include "local-path-provisioner.validateCapacity" . -}}
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
{{- if eq (default "" $class.onNodeLost) "release" -}}
{{- if and $root.Values.rbac.create (not $root.Values.nodeLost.enabled) -}}
{{- fail (printf "StorageClass %s: onNodeLost: release needs nodeLost.enabled, the permission to delete claims" $name) -}}
{{- end -}}
{{- if $paths.sharedFileSystemPath -}}
{{- fail (printf "StorageClass %s: volumes of sharedFileSystemPath belong to no node; leave onNodeLost empty" $name) -}}
{{- end -}}
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
{{- include "local-path-provisioner.validateClassBeside" (dict "root" . "values" "quota" "others" (list "quota" "capacity") "why" "a shared filesystem has no project quota") -}}
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

{{- define "local-path-provisioner.validateCapacity" -}}
{{- if .Values.capacity.enabled -}}
{{- $class := .Values.capacity.storageClass -}}
{{- if eq .Values.capacity.provisionerName (include "local-path-provisioner.provisionerName" .) -}}
{{- fail (printf "capacity.provisionerName: %s is storageClass.provisionerName already; it is served besides and must be another name" .Values.capacity.provisionerName) -}}
{{- end -}}
{{- if and .Values.configmap.create (not (or .Values.quota.enabled .Values.agents.enabled .Values.setupCommand .Values.configmap.setup)) -}}
{{- fail "capacity.enabled: nothing would tell the free space of the nodes; set quota.enabled or agents.enabled, or setupCommand or configmap.setup with something of yours that tells it" -}}
{{- end -}}
{{- if $class.create -}}
{{- include "local-path-provisioner.validateClassBeside" (dict "root" . "values" "capacity" "others" (list "capacity") "why" "a shared filesystem has the same room for every node") -}}
{{- if and (eq (default "" $class.quota) "hard") (not .Values.quota.enabled) .Values.configmap.create -}}
{{- fail "capacity.storageClass.quota: hard needs quota.enabled" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A class of its own beside others: dict "root", "values" (quota or capacity), "others" (what is left
out to see the other classes) and "why" it needs paths of nodes. */}}
{{- define "local-path-provisioner.validateClassBeside" -}}
{{- $values := .root.Values -}}
{{- $name := (get $values .values).storageClass.name -}}
{{- $left := dict -}}
{{- range .others }}{{ $_ := set $left . (dict "enabled" false) }}{{ end -}}
{{- $others := include "local-path-provisioner.classes" (dict "Values" (mergeOverwrite (deepCopy ($values | toJson | fromJson)) $left)) | fromJson -}}
{{- if hasKey $others $name -}}
{{- fail (printf "%s.storageClass.name: there is another class %s; choose another name" .values $name) -}}
{{- end -}}
{{- $config := get ($values.storageClassConfigs | default dict) $name | default dict -}}
{{- if not (or $values.nodePathMap $config.nodePathMap) -}}
{{- fail (printf "%s.enabled: StorageClass %s needs paths of nodes: a nodePathMap, or storageClassConfigs.%s.nodePathMap; %s" .values $name $name .why) -}}
{{- end -}}
{{- end -}}
