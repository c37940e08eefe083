{{/* The provisioner's command line as a YAML list. A flag that is left to its default is not given. */}}
{{- define "local-path-provisioner.command" -}}
{{- $args := list "local-path-provisioner" -}}
{{- if .Values.debug }}{{ $args = append $args "--debug" }}{{ end -}}
{{- $args = concat $args (list "start") -}}
{{- /* A ConfigMap of another namespace cannot be mounted; it is read through the API. */ -}}
{{- if not .Values.helperNamespace.name }}{{ $args = concat $args (list "--config" "/etc/config/config.json") }}{{ end -}}
{{- if .Values.leaderElection.enabled }}{{ $args = append $args "--leader-elect" }}{{ end -}}
{{- $args = concat $args (list "--service-account-name" (include "local-path-provisioner.helperServiceAccountName" .)) -}}
{{- $args = concat $args (list "--provisioner-name" (include "local-path-provisioner.provisionerName" .)) -}}
{{- if .Values.capacity.enabled }}{{ $args = concat $args (list "--capacity-provisioner-name" .Values.capacity.provisionerName) }}{{ end -}}
{{- $args = concat $args (list "--helper-image" (include "local-path-provisioner.helperImage" .)) -}}
{{- $args = concat $args (list "--configmap-name" .Values.configmap.name) -}}

{{- $numbers := list
  (list "--worker-threads" .Values.workerThreads)
  (list "--provisioning-retry-count" .Values.provisioningRetryCount)
  (list "--deletion-retry-count" .Values.deletionRetryCount)
  (list "--kube-client-burst" .Values.clientThrottle.burst) -}}
{{- range $numbers -}}
{{- /* 0 means something, null does not; numbers of a file are floats for Helm */ -}}
{{- if not (kindIs "invalid" (index . 1)) }}{{ $args = concat $args (list (index . 0) (index . 1 | int64 | toString)) }}{{ end -}}
{{- end -}}
{{- with .Values.clientThrottle.qps }}{{ $args = concat $args (list "--kube-client-qps" (toString .)) }}{{ end -}}

{{- $election := .Values.leaderElection -}}
{{- if $election.enabled -}}
{{- $texts := list
  (list "--leader-elect-lease-duration" $election.leaseDuration)
  (list "--leader-elect-renew-deadline" $election.renewDeadline)
  (list "--leader-elect-retry-period" $election.retryPeriod)
  (list "--leader-elect-resource-name" $election.resourceName)
  (list "--leader-elect-resource-namespace" $election.resourceNamespace) -}}
{{- range $texts -}}
{{- if index . 1 }}{{ $args = concat $args . }}{{ end -}}
{{- end -}}
{{- end -}}

{{- if not .Values.bindClaims }}{{ $args = append $args "--bind-claims=false" }}{{ end -}}
{{- with .Values.logLevel }}{{ $args = concat $args (list "--log-level" .) }}{{ end -}}
{{- with .Values.logFormat }}{{ $args = concat $args (list "--log-format" .) }}{{ end -}}
{{- /* a template that adds capabilities is refused otherwise */ -}}
{{- if or .Values.allowUnsafeHelperPodTemplate .Values.quota.enabled }}{{ $args = append $args "--allow-unsafe-helper-pod-template" }}{{ end -}}
{{- if .Values.agents.enabled }}{{ $args = concat $args (list "--agents" "--agents-port" (.Values.agents.port | int64 | toString) "--agents-service" (include "local-path-provisioner.agentsService" .) "--agents-service-account" (printf "%s-agent" (include "local-path-provisioner.fullname" .))) }}{{ end -}}
{{- range .Values.extraArgs }}{{ $args = append $args (toString .) }}{{ end -}}
{{- toYaml $args -}}
{{- end -}}
