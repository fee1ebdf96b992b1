{{/* Name of the chart's objects; at most 40 characters, for what is put behind it. */}}
{{- define "lockedcron.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "lockedcron.redisName" -}}
{{ include "lockedcron.fullname" . }}-redis
{{- end -}}

{{- define "lockedcron.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "lockedcron.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change: selectors are immutable. Call with (dict "root" . "component" NAME). */}}
{{- define "lockedcron.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Of pods: without what changes at each version of the chart, or every upgrade would restart all of them. */}}
{{- define "lockedcron.podLabels" -}}
{{ include "lockedcron.selector" . }}
app.kubernetes.io/part-of: lockedcron
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockedcron.labels" -}}
{{ include "lockedcron.podLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* name, labels and annotations. Call with (dict "root" . "component" NAME "name" NAME "annotations" DICT "cluster" BOOL). */}}
{{- define "lockedcron.metadata" -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
labels:
  {{- include "lockedcron.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Call with (dict "root" . "image" IMAGE "registry" DEFAULT). */}}
{{- define "lockedcron.image" -}}
{{- $registry := coalesce .image.registry .root.Values.global.imageRegistry .registry -}}
{{- $version := ternary (printf "@%s" .image.digest) (printf ":%s" (default .root.Chart.AppVersion .image.tag)) (ne .image.digest "") -}}
{{- printf "%s/%s%s" $registry .image.repository $version -}}
{{- end -}}

{{- define "lockedcron.operatorImage" -}}
{{ include "lockedcron.image" (dict "root" . "image" .Values.image "registry" "ghcr.io") }}
{{- end -}}

{{- define "lockedcron.pullSecrets" -}}
{{- $names := list -}}
{{- range concat (default (list) .Values.global.imagePullSecrets) .Values.imagePullSecrets -}}
{{- $names = append $names (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- with $names }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Whether something is wanted that is `auto`, true or false. Call with (dict "root" . "enabled" VALUE "kind" GVK). */}}
{{- define "lockedcron.wanted" -}}
{{- if eq (toString .enabled) "auto" -}}
{{- if .root.Capabilities.APIVersions.Has .kind }}yes{{ end -}}
{{- else if eq (toString .enabled) "true" }}yes{{ end -}}
{{- end -}}

{{/* Pods of one kind away from one another, and spread over zones; both only where possible. */}}
{{- define "lockedcron.placement" -}}
{{- $labels := include "lockedcron.selector" . -}}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- else }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- $labels | nindent 14 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- else }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- $labels | nindent 8 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}
