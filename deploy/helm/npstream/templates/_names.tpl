{{- define "npstream.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* Short: pod names add to it, and a pod's name becomes a client id. */ -}}
{{- define "npstream.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "npstream.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "npstream.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* A Service must begin with a letter; a release need not. */ -}}
{{- define "npstream.service" -}}
{{- $name := include "npstream.fullname" . -}}
{{- ternary $name (print "npstream-" $name) (regexMatch "^[a-z]" $name) -}}
{{- end -}}

{{- define "npstream.selector" -}}
app.kubernetes.io/name: {{ include "npstream.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "npstream.labels" -}}
{{ include "npstream.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "npstream.serviceAccount" -}}
{{- default (include "npstream.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "npstream.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* The settings the chart itself needs, with the worker's defaults, as YAML. */ -}}
{{- define "npstream.facts" -}}
{{- $s := include "npstream.settings" . | fromYaml -}}
{{- $events := dig "topics" "events" "" $s -}}
static: {{ dig "kafka" "static_membership" true $s }}
group: {{ dig "kafka" "group" "" $s | quote }}
port: {{ dig "http" "port" 8080 $s | int64 }}
transactionMs: {{ dig "kafka" "transaction_timeout_ms" 15000 $s | int64 }}
sessionMs: {{ dig "kafka" "session_timeout_ms" 45000 $s | int64 }}
pollMs: {{ dig "kafka" "max_poll_interval_ms" 300000 $s | int64 }}
drainMs: {{ mulf (dig "worker" "drain_seconds" 20.0 $s) 1000 | int64 }}
brokerPorts: {{ include "npstream.brokerPorts" (dict "given" .Values.networkPolicy.brokerPorts "bootstrap" (dig "kafka" "bootstrap" "" $s)) }}
maxReplicas: {{ default .Values.partitions .Values.autoscaling.maxReplicas | int64 }}
topics:
  events: {{ $events | quote }}
  decisions: {{ dig "topics" "decisions" nil $s | default (printf "%s-decisions" $events) | quote }}
  labels: {{ dig "labels" "topic" nil $s | default "" | quote }}
  deadLetters: {{ dig "topics" "dead_letters" nil $s | default (printf "%s-dead-letters" $events) | quote }}
  checkpoints: {{ dig "topics" "checkpoints" nil $s | default (printf "%s-checkpoints" $events) | quote }}
{{- end -}}

{{- /* The port of an address that begins with http:// or https://. */ -}}
{{- define "npstream.portOf" -}}
{{- regexFind ":[0-9]+$" (urlParse .).host | trimPrefix ":" | default (ternary "443" "80" (hasPrefix "https:" .)) | int64 -}}
{{- end -}}

{{- /* The ports given, or those of the brokers that are asked first; as JSON. None when only the worker will know them. */ -}}
{{- define "npstream.brokerPorts" -}}
{{- $ports := list -}}
{{- range .given -}}
{{- $ports = append $ports (int64 .) -}}
{{- end -}}
{{- if not (or $ports (contains "${" .bootstrap)) -}}
{{- range splitList "," .bootstrap -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" (trim .) | trimPrefix ":" | default "9092" | int64) -}}
{{- end -}}
{{- end -}}
{{- uniq $ports | toJson -}}
{{- end -}}

{{- /*
How many workers; nothing when the autoscaler alone decides. A group that is scaled goes on with as many as are running:
without a number the API would set 1, and with that of the values each upgrade would undo what the autoscaler did. Where
there is no workload yet, or no cluster to ask (`helm template`), it starts with the values' number.
*/ -}}
{{- define "npstream.replicas" -}}
{{- $v := .Values -}}
{{- $facts := include "npstream.facts" . | fromYaml -}}
{{- $live := ternary (lookup "apps/v1" "Deployment" .Release.Namespace (include "npstream.fullname" .)) dict $v.autoscaling.enabled -}}
{{- if $live -}}
{{- $live.spec.replicas | int64 -}}
{{- else if not $v.autoscaling.enabled -}}
{{- $v.replicas | int64 -}}
{{- else if not (kindIs "invalid" $v.replicas) -}}
{{- min (max (int64 $v.replicas) (int64 $v.autoscaling.minReplicas)) (int64 $facts.maxReplicas) -}}
{{- end -}}
{{- end -}}
