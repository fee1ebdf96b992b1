{{/* What the schema cannot say: values that contradict one another. Each message names what to write instead. */}}
{{- define "lockedcron.checks" -}}
{{- $v := .Values -}}
{{- $external := or $v.externalRedis.nodes $v.externalRedis.configSecret -}}
{{- if and $v.externalRedis.nodes $v.externalRedis.configSecret -}}
{{- fail "externalRedis.nodes and externalRedis.configSecret are both set: the Secret lists all nodes; leave one of them empty" -}}
{{- end -}}
{{- if and $v.redis.enabled $v.externalRedis.configSecret -}}
{{- fail "redis.enabled and externalRedis.configSecret are both set: for your own Redis nodes write redis.enabled: false, for those of the chart empty externalRedis.configSecret" -}}
{{- end -}}
{{- if and $v.redis.enabled $v.externalRedis.nodes -}}
{{- fail "redis.enabled and externalRedis.nodes are both set: for your own Redis nodes write redis.enabled: false, for those of the chart empty externalRedis.nodes" -}}
{{- end -}}
{{- if eq $v.lock.backend "kubernetes" -}}
{{- if or $v.redis.enabled $external -}}
{{- fail "lock.backend: kubernetes uses no Redis: write redis.enabled: false and leave externalRedis.nodes and externalRedis.configSecret empty, or write lock.backend: redis" -}}
{{- end -}}
{{- else if not (or $v.redis.enabled $external) -}}
{{- fail "lock.backend: redis needs Redis: write redis.enabled: true, or the addresses of yours in externalRedis.nodes or externalRedis.configSecret, or lock.backend: kubernetes" -}}
{{- end -}}
{{- if eq (len $v.externalRedis.nodes) 2 -}}
{{- fail "externalRedis.nodes: two nodes survive no failure at all; write 3 or 5 addresses (or 1 for trials)" -}}
{{- end -}}
{{- if ne (len (uniq $v.externalRedis.nodes)) (len $v.externalRedis.nodes) -}}
{{- fail "externalRedis.nodes: an address is given more than once; each must be another Redis server" -}}
{{- end -}}
{{- if and $v.redis.enabled (eq (int $v.redis.previousNodes) (int $v.redis.nodes)) -}}
{{- fail "redis.previousNodes is redis.nodes: write the number before the change, or 0 when there is none" -}}
{{- end -}}
{{- if and $v.redis.tls.enabled (not $v.redis.tls.existingSecret) -}}
{{- fail "redis.tls.enabled needs redis.tls.existingSecret: a Secret with tls.crt, tls.key and ca.crt, for the names *.<release>-redis.<namespace>.svc" -}}
{{- end -}}
{{- if and $external $v.watchNamespaces (not $v.clusterId) -}}
{{- fail "clusterId is needed with externalRedis and watchNamespaces: it keeps the keys of clusters apart that share Redis, e.g. clusterId: prod-eu-1" -}}
{{- end -}}
{{- if and (ne (toString $v.monitoring.serviceMonitor.enabled) "false") (ne (toString $v.monitoring.serviceMonitor.enabled) "auto") (not $v.service.enabled) -}}
{{- fail "monitoring.serviceMonitor.enabled needs service.enabled: true (or write monitoring.podMonitor.enabled: true instead)" -}}
{{- end -}}
{{- end -}}
