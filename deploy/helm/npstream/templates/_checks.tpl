{{- /* Refuse values that cannot work, all at once, each with what to do. What one value may be is for values.schema.json. */ -}}
{{- define "npstream.checks" -}}
{{- $found := print (include "npstream.workerProblems" .) (include "npstream.timeoutProblems" .) (include "npstream.settingsProblems" .) (include "npstream.podProblems" .) (include "npstream.secretProblems" .) (include "npstream.strimziProblems" .) (include "npstream.monitoringProblems" .) (include "npstream.clusterProblems" .) -}}
{{- if $found -}}
{{- fail (print "these values cannot be used:" $found) -}}
{{- end -}}
{{- end -}}

{{- /* How many workers there are, and who decides it. */ -}}
{{- define "npstream.workerProblems" -}}
{{- $v := .Values -}}
{{- $facts := include "npstream.facts" . | fromYaml -}}
{{- $partitions := int64 $v.partitions -}}
{{- $most := int64 $facts.maxReplicas -}}
{{- if lt $partitions 1 }}
- partitions: say how many partitions the events topic has
{{- else if $v.autoscaling.enabled -}}
{{- if gt $most $partitions }}
- autoscaling.maxReplicas: {{ $most }} workers for {{ $partitions }} partitions: the others would be idle; lower it
{{- end -}}
{{- else if kindIs "invalid" $v.replicas }}
- replicas: missing; say how many workers, or turn autoscaling on
{{- else if gt (int64 $v.replicas) $partitions }}
- replicas: {{ int64 $v.replicas }} workers for {{ $partitions }} partitions: the others would be idle; lower it
{{- end -}}
{{- if $v.autoscaling.enabled -}}
{{- if $facts.static }}
- autoscaling: not with static membership: a worker that is scaled away would keep its partitions idle for a session timeout; set settings.kafka.static_membership: false, or turn autoscaling off
{{- end -}}
{{- if gt (int64 $v.autoscaling.minReplicas) $most }}
- autoscaling.minReplicas: {{ int64 $v.autoscaling.minReplicas }} is above maxReplicas {{ $most }}
{{- end -}}
{{- if not $v.autoscaling.prometheusAddress }}
- autoscaling.prometheusAddress: missing; say where KEDA can ask how late the group is
{{- end -}}
{{- if kindIs "string" $v.autoscaling.lagSeconds -}}
{{- include "npstream.boundProblems" (dict "path" "autoscaling.lagSeconds" "value" $v.autoscaling.lagSeconds "limits" (dict "exclusiveMinimum" 0)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Each must be shorter than the next. */ -}}
{{- define "npstream.timeoutProblems" -}}
{{- $facts := include "npstream.facts" . | fromYaml -}}
{{- $grace := int64 .Values.terminationGracePeriodSeconds -}}
{{- $graceMs := mul $grace 1000 -}}
{{- $transaction := int64 $facts.transactionMs -}}
{{- $session := int64 $facts.sessionMs -}}
{{- $poll := int64 $facts.pollMs -}}
{{- $drain := int64 $facts.drainMs -}}
{{- if le $graceMs $transaction }}
- terminationGracePeriodSeconds: {{ $grace }} s must be longer than settings.kafka.transaction_timeout_ms ({{ $transaction }}): the last transaction would be cut off
{{- end -}}
{{- if lt $graceMs (add $drain 5000) }}
- terminationGracePeriodSeconds: {{ $grace }} s must be 5 s longer than settings.worker.drain_seconds ({{ $drain }} ms): the last checkpoint would be cut off
{{- end -}}
{{- if and $facts.static (ge $graceMs $session) }}
- terminationGracePeriodSeconds: {{ $grace }} s must be shorter than settings.kafka.session_timeout_ms ({{ $session }}) with static membership: a slow stop would move partitions; raise the session timeout
{{- end -}}
{{- if or (gt $transaction $session) (gt $session $poll) }}
- settings.kafka: transaction_timeout_ms <= session_timeout_ms <= max_poll_interval_ms must hold, found {{ $transaction }}, {{ $session }}, {{ $poll }}
{{- end -}}
{{- end -}}

{{- /* Settings that are fine for a worker and not for one in a pod. */ -}}
{{- define "npstream.podProblems" -}}
{{- $settings := .Values.settings -}}
{{- $least := 268435456.0 -}}
{{- if lt (include "npstream.bytes" .Values.resources.memory | float64) $least }}
- resources.memory: {{ .Values.resources.memory }} is less than a worker takes before its first partition; give 256Mi or more, see `Memory` in deploy/README.md
{{- end -}}
{{- if eq (int64 (include "npstream.facts" . | fromYaml).port) 0 }}
- settings.http.port: 0 takes any free port, which no probe would find; give a number
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not (include "npstream.facts" . | fromYaml).brokerPorts) }}
- networkPolicy.brokerPorts: missing; settings.kafka.bootstrap does not say the ports of the brokers before the worker starts: list them
{{- end -}}
{{- if and .Values.networkPolicy.enabled (contains "${" (dig "events" "registry" "url" "" $settings)) }}
- settings.events.registry.url: write the address itself, or turn networkPolicy off: its port must be known before the worker starts
{{- end -}}
{{- if and .Values.networkPolicy.enabled (contains "${" (dig "kafka" "security" "token_url" "" $settings | default "")) }}
- settings.kafka.security.token_url: write the address itself, or turn networkPolicy off: its port must be known before the worker starts
{{- end -}}
{{- $host := dig "http" "host" "" $settings -}}
{{- if regexMatch "^(localhost|127\\..*|::1)$" $host }}
- settings.http.host: {{ $host }} is reached from inside the pod only: probes would fail; leave it out
{{- end -}}
{{- $name := dig "kafka" "worker_name" "" $settings -}}
{{- if and $name (not (contains "${" $name)) }}
- settings.kafka.worker_name: every worker needs its own; leave it out, the pod's name is used
{{- end -}}
{{- end -}}

{{- define "npstream.strimziProblems" -}}
{{- $strimzi := .Values.strimzi -}}
{{- $security := dig "kafka" "security" nil .Values.settings | default dict -}}
{{- if $strimzi.enabled -}}
{{- if not $strimzi.cluster }}
- strimzi.cluster: missing; give the name of the Kafka resource
{{- end -}}
{{- if and (eq $strimzi.user.authentication "scram-sha-512") (ne (dig "mechanism" nil $security | default "") "SCRAM-SHA-512") }}
- strimzi.user.authentication: scram-sha-512 needs settings.kafka.security.mechanism: SCRAM-SHA-512, or say none and bring your own user
{{- end -}}
{{- if and (eq $strimzi.user.authentication "tls") (not (dig "cert_file" nil $security)) }}
- strimzi.user.authentication: tls needs settings.kafka.security.cert_file and key_file
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A quantity of memory as a number of bytes; what it may look like is for values.schema.json. */ -}}
{{- define "npstream.bytes" -}}
{{- $units := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-zA-Z]*$" .)) -}}
{{- end -}}

{{- define "npstream.monitoringProblems" -}}
{{- $monitoring := .Values.monitoring -}}
{{- if and $monitoring.podMonitor $monitoring.serviceMonitor }}
- monitoring: podMonitor and serviceMonitor would scrape every worker twice; turn one off
{{- end -}}
{{- range $name, $given := $monitoring.thresholds -}}
{{- if kindIs "string" $given -}}
{{- $limits := ternary (dict "exclusiveMinimum" 0 "exclusiveMaximum" 1) (dict "exclusiveMinimum" 0) (hasSuffix "Share" $name) -}}
{{- include "npstream.boundProblems" (dict "path" (print "monitoring.thresholds." $name) "value" $given "limits" $limits) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Operators whose resources are asked for and that the cluster does not have. Only a cluster has API services. */ -}}
{{- define "npstream.clusterProblems" -}}
{{- $v := .Values -}}
{{- $apis := .Capabilities.APIVersions -}}
{{- if $apis.Has "apiregistration.k8s.io/v1" -}}
{{- range list
  (list $v.monitoring.podMonitor "monitoring.podMonitor" "monitoring.coreos.com/v1/PodMonitor" "the Prometheus operator")
  (list $v.monitoring.serviceMonitor "monitoring.serviceMonitor" "monitoring.coreos.com/v1/ServiceMonitor" "the Prometheus operator")
  (list $v.monitoring.prometheusRule "monitoring.prometheusRule" "monitoring.coreos.com/v1/PrometheusRule" "the Prometheus operator")
  (list $v.autoscaling.enabled "autoscaling.enabled" "keda.sh/v1alpha1/ScaledObject" "KEDA")
  (list $v.strimzi.enabled "strimzi.enabled" "kafka.strimzi.io/v1/KafkaTopic" "Strimzi 0.49 or newer")
-}}
{{- if and (index . 0) (not ($apis.Has (index . 2))) }}
- {{ index . 1 }}: this cluster has no {{ index . 2 }}; install {{ index . 3 }} first, or turn it off
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
