{{- define "local-path-provisioner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "local-path-provisioner.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "local-path-provisioner.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "local-path-provisioner.helperServiceAccountName" -}}
{{- if .Values.helperNamespace.name -}}
{{- .Values.helperNamespace.serviceAccount -}}
{{- else -}}
{{- include "local-path-provisioner.serviceAccountName" . -}}
{{- end -}}
{{- end -}}

{{/* Where the helper pods run; the ConfigMap and the lease are there too. */}}
{{- define "local-path-provisioner.helperNamespace" -}}
{{- default (include "local-path-provisioner.namespace" .) .Values.helperNamespace.name -}}
{{- end -}}

{{- define "local-path-provisioner.selectorLabels" -}}
app.kubernetes.io/name: {{ include "local-path-provisioner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "local-path-provisioner.labels" -}}
{{ include "local-path-provisioner.selectorLabels" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels and others, which win: dict "root" and "labels". */}}
{{- define "local-path-provisioner.labelsWith" -}}
{{- $labels := include "local-path-provisioner.labels" .root | fromYaml -}}
{{- toYaml (merge (deepCopy (.labels | default dict)) $labels) -}}
{{- end -}}

{{/* One endpoint of a monitor. The rules and the dashboard choose the metrics whose names others use
too by this job, whatever the release is called. */}}
{{- define "local-path-provisioner.scrape" -}}
port: health
path: /metrics
interval: {{ .interval }}
# What is told of a claim keeps the claim's namespace.
honorLabels: true
relabelings:
  - {targetLabel: job, replacement: {{ .job | default "local-path-provisioner" }}}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "local-path-provisioner.serviceAccountName" -}}
{{- $fallback := ternary (include "local-path-provisioner.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $fallback .Values.serviceAccount.name -}}
{{- end -}}

{{- define "local-path-provisioner.provisionerName" -}}
{{- default (printf "cluster.local/%s" (include "local-path-provisioner.fullname" .)) .Values.storageClass.provisionerName -}}
{{- end -}}

{{/* Name of an image: dict "root" and "image" (repository, tag, digest). */}}
{{- define "local-path-provisioner.image" -}}
{{- with .root.Values.privateRegistry.registryUrl }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .image.repository }}:{{ default .root.Chart.AppVersion .image.tag -}}
{{- with .image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* Our own image has the program that does it without scripts. */}}
{{- define "local-path-provisioner.helperImage" -}}
{{- $image := ternary .Values.image .Values.helperImage .Values.quota.enabled -}}
{{- include "local-path-provisioner.image" (dict "root" . "image" $image) -}}
{{- end -}}

{{/* JSON list of the Secrets for both images. */}}
{{- define "local-path-provisioner.imagePullSecrets" -}}
{{- $secrets := .Values.imagePullSecrets | default list -}}
{{- with .Values.defaultSettings.registrySecret -}}
{{- $secrets = append $secrets (dict "name" .) | uniq -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end -}}

{{/* The same and those of the helper image. */}}
{{- define "local-path-provisioner.helperPullSecrets" -}}
{{- $secrets := include "local-path-provisioner.imagePullSecrets" . | fromJsonArray -}}
{{- toJson (concat $secrets (.Values.helperImage.pullSecrets | default list) | uniq) -}}
{{- end -}}

{{/* JSON object {class name: its value storageClassConfigs.<name>} of the classes to make; "provisioner"
beside it where it is not the provisioner's first name. */}}
{{- define "local-path-provisioner.classes" -}}
{{- $classes := dict -}}
{{- if .Values.storageClassConfigs -}}
{{- range $name, $config := .Values.storageClassConfigs -}}
{{- if and $config.storageClass (dig "create" true $config.storageClass) -}}
{{- $_ := set $classes $name $config -}}
{{- end -}}
{{- end -}}
{{- else if .Values.storageClass.create -}}
{{- $_ := set $classes .Values.storageClass.name (pick .Values "storageClass") -}}
{{- end -}}
{{- if .Values.quota.enabled -}}
{{- $class := merge (dict "quota" "hard" "allowVolumeExpansion" true "defaultVolumeType" "local") .Values.quota.storageClass -}}
{{- $_ := set $classes $class.name (dict "storageClass" (omit $class "name")) -}}
{{- end -}}
{{- with .Values.capacity -}}
{{- if and .enabled .storageClass.create -}}
{{- $class := merge (dict "defaultVolumeType" (ternary "local" "hostPath" (eq (default "" .storageClass.quota) "hard"))) .storageClass -}}
{{- $_ := set $classes $class.name (dict "provisioner" .provisionerName "storageClass" (omit $class "name")) -}}
{{- end -}}
{{- end -}}
{{- toJson $classes -}}
{{- end -}}

{{/* The names of the classes, made here or elsewhere, as a pattern of Prometheus; in brackets a dot needs
no backslash, of which PromQL, YAML and JSON would each want another number. */}}
{{- define "local-path-provisioner.classPattern" -}}
{{- $names := concat (include "local-path-provisioner.classes" . | fromJson | keys) (.Values.monitoring.storageClasses | default list) -}}
{{- if .Values.storageClassConfigs }}{{ $names = concat $names (keys .Values.storageClassConfigs) -}}
{{- else }}{{ $names = append $names .Values.storageClass.name }}{{ end -}}
{{- $names | uniq | sortAlpha | join "|" | replace "." "[.]" -}}
{{- end -}}

{{/* nodePathMap or sharedFileSystemPath of a dict that may have one, as a JSON object. */}}
{{- define "local-path-provisioner.paths" -}}
{{- $paths := dict -}}
{{- with .nodePathMap }}{{ $_ := set $paths "nodePathMap" . }}{{ end -}}
{{- with .sharedFileSystemPath }}{{ $_ := set $paths "sharedFileSystemPath" . }}{{ end -}}
{{- toJson $paths -}}
{{- end -}}

{{/* JSON list of the base paths of nodes, each once and without a slash at its end. */}}
{{- define "local-path-provisioner.nodePaths" -}}
{{- $paths := list -}}
{{- range append (values (.Values.storageClassConfigs | default dict)) .Values -}}
{{- range .nodePathMap }}{{ range .paths }}{{ $paths = append $paths (regexReplaceAll "/+$" . "") }}{{ end }}{{ end -}}
{{- end -}}
{{- toJson ($paths | uniq | sortAlpha) -}}
{{- end -}}

{{/* The same with shared filesystems and admissionPolicy.extraPaths. */}}
{{- define "local-path-provisioner.basePaths" -}}
{{- $paths := include "local-path-provisioner.nodePaths" . | fromJsonArray -}}
{{- $others := .Values.admissionPolicy.extraPaths | default list -}}
{{- range append (values (.Values.storageClassConfigs | default dict)) .Values -}}
{{- with .sharedFileSystemPath }}{{ $others = append $others . }}{{ end -}}
{{- end -}}
{{- range $others }}{{ $paths = append $paths (regexReplaceAll "/+$" . "") }}{{ end -}}
{{- toJson ($paths | uniq | sortAlpha) -}}
{{- end -}}

{{/* Where agents find the provisioner; Secret and ConfigMap with its certificates begin with it. */}}
{{- define "local-path-provisioner.agentsService" -}}
{{- printf "%s-agents" (include "local-path-provisioner.fullname" .) -}}
{{- end -}}

{{/* config.json as the provisioner reads it. */}}
{{- define "local-path-provisioner.config" -}}
{{- $config := include "local-path-provisioner.paths" .Values | fromJson -}}
{{- $classes := dict -}}
{{- range $name, $class := .Values.storageClassConfigs -}}
{{- $paths := include "local-path-provisioner.paths" $class | fromJson -}}
{{- if $paths }}{{ $_ := set $classes $name $paths }}{{ end -}}
{{- end -}}
{{- with $classes }}{{ $_ := set $config "storageClassConfigs" . }}{{ end -}}
{{- with .Values.cmdTimeoutSeconds }}{{ $_ := set $config "cmdTimeoutSeconds" (int .) }}{{ end -}}
{{- if .Values.quota.enabled -}}
{{- range list "setupCommand" "teardownCommand" "resizeCommand" }}{{ $_ := set $config . "/usr/bin/local-path-node" }}{{ end -}}
{{- end -}}
{{- with .Values.resizeCommand }}{{ $_ := set $config "resizeCommand" . }}{{ end -}}
{{- with .Values.setupCommand }}{{ $_ := set $config "setupCommand" . }}{{ end -}}
{{- with .Values.teardownCommand }}{{ $_ := set $config "teardownCommand" . }}{{ end -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/* helperPod.yaml. */}}
{{- define "local-path-provisioner.helperPod" -}}
{{- $values := .Values.configmap.helperPod -}}
{{- $base := .Files.Get "files/helperPod.yaml" | fromYaml -}}
{{- $spec := $base.spec -}}
{{- $container := index $spec.containers 0 -}}
{{- $_ := set $container "image" (include "local-path-provisioner.helperImage" .) -}}
{{- $_ := set $container "imagePullPolicy" (default .Values.image.pullPolicy .Values.helperImage.pullPolicy) -}}
{{- if .Values.quota.enabled }}{{ $_ := set $container "securityContext" (.Files.Get "files/quotaSecurityContext.yaml" | fromYaml) }}{{ end -}}
{{- with .Values.helperPod.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- $container = mergeOverwrite $container (deepCopy $values.container) -}}
{{- $_ := set $spec "containers" (list $container) -}}
{{- with include "local-path-provisioner.helperPullSecrets" . | fromJsonArray }}{{ $_ := set $spec "imagePullSecrets" . }}{{ end -}}
{{- $_ := set $spec "tolerations" (concat $spec.tolerations ($values.tolerations | default list)) -}}
{{- $_ := set $spec "priorityClassName" $values.priorityClassName -}}
{{- if not $values.priorityClassName }}{{ $_ := unset $spec "priorityClassName" }}{{ end -}}
{{- $spec = mergeOverwrite $spec (deepCopy $values.spec) -}}
{{- $metadata := dict "name" $values.name -}}
{{- with $values.annotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
{{- with merge (deepCopy $values.labels) .Values.commonLabels }}{{ $_ := set $metadata "labels" . }}{{ end -}}
{{- toYaml (dict "apiVersion" "v1" "kind" "Pod" "metadata" $metadata "spec" $spec) -}}
{{- end -}}

{{/* A probe: dict "values" and "path" of the default handler. */}}
{{- define "local-path-provisioner.probe" -}}
{{- $handlers := pick .values "httpGet" "exec" "tcpSocket" "grpc" -}}
{{- if not $handlers -}}
httpGet: {path: {{ .path }}, port: health}
{{ end -}}
{{- with .values }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- define "local-path-provisioner.rbacSubjects" -}}
- kind: ServiceAccount
  name: {{ include "local-path-provisioner.serviceAccountName" . }}
  namespace: {{ include "local-path-provisioner.namespace" . }}
{{- end -}}

{{- define "local-path-provisioner.leaseRule" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create] # has no name yet
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ default (include "local-path-provisioner.provisionerName" . | replace "/" "-") .Values.leaderElection.resourceName | quote }}]
  verbs: [get, update]
{{- end -}}

{{/* The lease's namespace when it is not the provisioner's own. */}}
{{- define "local-path-provisioner.foreignLeaseNamespace" -}}
{{- $namespace := .Values.leaderElection.resourceNamespace -}}
{{- if and .Values.leaderElection.enabled $namespace (ne $namespace (include "local-path-provisioner.helperNamespace" .)) -}}
{{- $namespace -}}
{{- end -}}
{{- end -}}
