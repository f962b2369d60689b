{{- /*
Refuse values that cannot work together, all at once, each with what to do.
What one setting may be is the business of values.schema.json.
*/ -}}
{{- define "npstream.checks" -}}
{{- $v := .Values -}}
{{- $facts := include "npstream.facts" . | fromYaml -}}
{{- $found := list -}}
{{- $graceMs := mul $v.terminationGracePeriodSeconds 1000 -}}

{{- if lt (int64 $v.partitions) 1 -}}
{{- $found = append $found "partitions: say how many partitions the events topic has" -}}
{{- else if $v.autoscaling.enabled -}}
{{- if gt (int64 $facts.maxReplicas) (int64 $v.partitions) -}}
{{- $found = append $found (printf "autoscaling.maxReplicas: %d workers for %d partitions: the others would stand idle; lower it" (int64 $facts.maxReplicas) (int64 $v.partitions)) -}}
{{- end -}}
{{- else if kindIs "invalid" $v.replicas -}}
{{- $found = append $found "replicas: missing; say how many workers, or turn autoscaling on" -}}
{{- else if gt (int64 $v.replicas) (int64 $v.partitions) -}}
{{- $found = append $found (printf "replicas: %d workers for %d partitions: the others would stand idle; lower it" (int64 $v.replicas) (int64 $v.partitions)) -}}
{{- end -}}

{{- if $v.autoscaling.enabled -}}
{{- if $facts.static -}}
{{- $found = append $found "autoscaling: not with static membership: a worker that is scaled away would keep its partitions idle for a session timeout; set settings.kafka.static_membership: false, or turn autoscaling off" -}}
{{- end -}}
{{- if gt (int64 $v.autoscaling.minReplicas) (int64 $facts.maxReplicas) -}}
{{- $found = append $found (printf "autoscaling.minReplicas: %d is above maxReplicas %d" (int64 $v.autoscaling.minReplicas) (int64 $facts.maxReplicas)) -}}
{{- end -}}
{{- if not $v.autoscaling.prometheusAddress -}}
{{- $found = append $found "autoscaling.prometheusAddress: missing; say where KEDA can ask how late the group is" -}}
{{- end -}}
{{- end -}}

{{- if le $graceMs (int64 $facts.transactionMs) -}}
{{- $found = append $found (printf "terminationGracePeriodSeconds: %d s must be longer than settings.kafka.transaction_timeout_ms (%d): the last transaction would be cut off" (int64 $v.terminationGracePeriodSeconds) (int64 $facts.transactionMs)) -}}
{{- end -}}
{{- if lt $graceMs (add (int64 $facts.drainMs) 5000) -}}
{{- $found = append $found (printf "terminationGracePeriodSeconds: %d s must be 5 s longer than settings.worker.drain_seconds (%d ms): the last checkpoint would be cut off" (int64 $v.terminationGracePeriodSeconds) (int64 $facts.drainMs)) -}}
{{- end -}}
{{- if and $facts.static (ge $graceMs (int64 $facts.sessionMs)) -}}
{{- $found = append $found (printf "terminationGracePeriodSeconds: %d s must be shorter than settings.kafka.session_timeout_ms (%d) with static membership: a slow stop would move partitions; raise the session timeout" (int64 $v.terminationGracePeriodSeconds) (int64 $facts.sessionMs)) -}}
{{- end -}}
{{- if or (gt (int64 $facts.transactionMs) (int64 $facts.sessionMs)) (gt (int64 $facts.sessionMs) (int64 $facts.pollMs)) -}}
{{- $found = append $found (printf "settings.kafka: transaction_timeout_ms <= session_timeout_ms <= max_poll_interval_ms must hold, found %d, %d, %d" (int64 $facts.transactionMs) (int64 $facts.sessionMs) (int64 $facts.pollMs)) -}}
{{- end -}}

{{- if eq (int64 $facts.port) 0 -}}
{{- $found = append $found "settings.http.port: 0 takes any free port, which no probe would find; give a number" -}}
{{- end -}}
{{- $slot := dig "kafka" "slot" "" $v.settings -}}
{{- if and $slot (not (contains "${" $slot)) -}}
{{- $found = append $found "settings.kafka.slot: every worker needs its own; leave it out, the pod's name is used" -}}
{{- end -}}
{{- range $name := list "password" "key_password" -}}
{{- $given := dig "kafka" "security" $name "" $v.settings | default "" -}}
{{- if and $given (not (hasPrefix "${file:/" $given)) -}}
{{- $found = append $found (printf "settings.kafka.security.%s: a secret in a ConfigMap or in the environment can be read by others; mount it with `secrets` and write ${file:/etc/npstream/secrets/<name>/<key>}" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $given := dig "kafka" "options" dict $v.settings | default dict -}}
{{- if and (regexMatch "password|secret|jaas|oauthbearer.config" $name) (not (hasPrefix "${file:/" (toString $given))) -}}
{{- $found = append $found (printf "settings.kafka.options.%s: a secret in a ConfigMap can be read by others; mount it with `secrets` and write ${file:/etc/npstream/secrets/<name>/<key>}" $name) -}}
{{- end -}}
{{- end -}}

{{- if $v.strimzi.enabled -}}
{{- if not $v.strimzi.cluster -}}
{{- $found = append $found "strimzi.cluster: missing; give the name of the Kafka resource" -}}
{{- end -}}
{{- if and (eq $v.strimzi.user.authentication "scram-sha-512") (ne (dig "kafka" "security" "mechanism" "" $v.settings | default "") "SCRAM-SHA-512") -}}
{{- $found = append $found "strimzi.user.authentication: scram-sha-512 needs settings.kafka.security.mechanism: SCRAM-SHA-512, or say none and bring your own user" -}}
{{- end -}}
{{- if and (eq $v.strimzi.user.authentication "tls") (not (dig "kafka" "security" "cert_file" "" $v.settings)) -}}
{{- $found = append $found "strimzi.user.authentication: tls needs settings.kafka.security.cert_file and key_file" -}}
{{- end -}}
{{- end -}}

{{- if $found -}}
{{- fail (printf "these values cannot be used:\n- %s" (join "\n- " $found)) -}}
{{- end -}}
{{- end -}}
