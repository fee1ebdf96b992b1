{{/* Settings of the operator that a test pod shares with it: flags, variables, files. */}}

{{/* Addresses of the first nodes of the chart's own. Call with (dict "root" . "count" NUMBER). */}}
{{- define "lockedcron.ownUrls" -}}
{{- $urls := list -}}
{{- $name := include "lockedcron.redisName" .root -}}
{{- $scheme := ternary "rediss" "redis" .root.Values.redis.tls.enabled -}}
{{- range until (int .count) -}}
{{- $urls = append $urls (printf "%s://%s-%d.%s.%s.svc:6379" $scheme $name . $name $.root.Release.Namespace) -}}
{{- end -}}
{{- join "," $urls -}}
{{- end -}}

{{- define "lockedcron.redisUrls" -}}
{{- if .Values.redis.enabled -}}
{{- include "lockedcron.ownUrls" (dict "root" . "count" .Values.redis.nodes) -}}
{{- else -}}
{{- join "," .Values.externalRedis.nodes -}}
{{- end -}}
{{- end -}}

{{- define "lockedcron.previousUrls" -}}
{{- if .Values.redis.enabled -}}
{{- include "lockedcron.ownUrls" (dict "root" . "count" .Values.redis.previousNodes) -}}
{{- else -}}
{{- join "," .Values.externalRedis.previousNodes -}}
{{- end -}}
{{- end -}}

{{- define "lockedcron.redisSecret" -}}
{{- if .Values.redis.enabled -}}
{{- default (include "lockedcron.redisName" .) .Values.redis.auth.existingSecret -}}
{{- else -}}
{{- .Values.externalRedis.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "lockedcron.clusterId" -}}
{{- if .Values.clusterId -}}
{{- .Values.clusterId -}}
{{- else if .Values.watchNamespaces -}}
{{- printf "%s.%s" .Release.Namespace (include "lockedcron.fullname" .) | trunc 63 | trimSuffix "-" | trimSuffix "." -}}
{{- end -}}
{{- end -}}

{{- define "lockedcron.settings" -}}
{{- $redis := eq .Values.lock.backend "redis" -}}
- --lock-backend={{ .Values.lock.backend }}
- --lock-prefix={{ .Values.lock.prefix }}
{{- if $redis }}
{{- if .Values.externalRedis.configSecret }}
- --redis-config=/etc/lockedcron/redis-config/redis.yaml
{{- else }}
- --redis={{ include "lockedcron.redisUrls" . }}
{{- end }}
{{- with include "lockedcron.previousUrls" . }}
- --redis-previous={{ . }}
{{- end }}
{{- with ternary "lockedcron" .Values.externalRedis.username .Values.redis.enabled }}
- --redis-username={{ . }}
{{- end }}
{{- if include "lockedcron.redisSecret" . }}
- --redis-password-file=/etc/lockedcron/redis/password
{{- end }}
{{- if .Values.redis.enabled }}
{{- if .Values.redis.tls.enabled }}
- --redis-ca-file=/etc/lockedcron/redis-tls/ca.crt
{{- end }}
{{- else if .Values.externalRedis.tls.existingSecret }}
- --redis-ca-file=/etc/lockedcron/redis-tls/ca.crt
{{- if .Values.externalRedis.tls.clientCertificate }}
- --redis-cert-file=/etc/lockedcron/redis-tls/tls.crt
- --redis-key-file=/etc/lockedcron/redis-tls/tls.key
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- with .Values.lock.sharedMutexNamespaces }}
- --shared-mutex-namespaces={{ join "," . }}
{{- end }}
{{- with include "lockedcron.clusterId" . }}
- --cluster-id={{ . }}
{{- end }}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
- --bind-address=:{{ .Values.service.port }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockedcron.settingsMounts" -}}
{{- if eq .Values.lock.backend "redis" -}}
{{- if include "lockedcron.redisSecret" . }}
- name: redis-password
  mountPath: /etc/lockedcron/redis
  readOnly: true
{{- end }}
{{- if or (and .Values.redis.enabled .Values.redis.tls.enabled) (and (not .Values.redis.enabled) .Values.externalRedis.tls.existingSecret) }}
- name: redis-tls
  mountPath: /etc/lockedcron/redis-tls
  readOnly: true
{{- end }}
{{- if .Values.externalRedis.configSecret }}
- name: redis-config
  mountPath: /etc/lockedcron/redis-config
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{- define "lockedcron.settingsVolumes" -}}
{{- if eq .Values.lock.backend "redis" -}}
{{- with include "lockedcron.redisSecret" . }}
- name: redis-password
  secret:
    secretName: {{ . }}
    items:
      - key: {{ ternary "password" $.Values.externalRedis.passwordKey $.Values.redis.enabled }}
        path: password
{{- end }}
{{- with .Values.externalRedis.configSecret }}
- name: redis-config
  secret:
    secretName: {{ . }}
{{- end }}
{{- if .Values.redis.enabled }}
{{- if .Values.redis.tls.enabled }}
- name: redis-tls
  secret:
    secretName: {{ .Values.redis.tls.existingSecret }}
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- else }}
{{- with .Values.externalRedis.tls }}
{{- if .existingSecret }}
- name: redis-tls
  secret:
    secretName: {{ .existingSecret }}
    items:
      - key: {{ .caKey }}
        path: ca.crt
      {{- if .clientCertificate }}
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
      {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
