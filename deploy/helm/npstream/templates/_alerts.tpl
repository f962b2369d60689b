{{- /* The rules as tested, with the values' numbers and where the runbooks are. A number ends the line it is on. */ -}}
{{- define "npstream.alerts" -}}
{{- $given := .Values.monitoring.thresholds -}}
{{- $numbers := dict
  "NpstreamLate critical" $given.lateCriticalSeconds
  "NpstreamLate warning" $given.lateWarningSeconds
  "NpstreamCheckpointOld warning" $given.checkpointAgeSeconds
  "NpstreamAborts warning" $given.abortShare
  "NpstreamRebalances warning" $given.rebalancesPerHour
  "NpstreamFprAboveTarget critical" $given.fprStandardDeviations
  "NpstreamAlarmsWithheld warning" $given.withheldShare
  "NpstreamLabelsLost warning" $given.labelsLostShare
  "NpstreamDeadLetters warning" $given.deadLetterShare
-}}
{{- $found := .Files.Get "files/npstream.rules.yaml" | replace "runbook_url: deploy/README.md" (printf "runbook_url: %s" .Values.monitoring.runbooks) | fromYaml -}}
{{- range $group := $found.groups -}}
{{- range $rule := $group.rules -}}
{{- with get $numbers (printf "%s %s" $rule.alert $rule.labels.severity) -}}
{{- $_ := set $rule "expr" (regexReplaceAll "(?m)> [0-9.]+$" $rule.expr (printf "> %s" (toString .))) -}}
{{- end -}}
{{- if hasKey $rule.labels "threshold" -}}
{{- $seconds := get $numbers (printf "%s %s" $rule.alert $rule.labels.severity) | int64 -}}
{{- $_ := set $rule.labels "threshold" (ternary (printf "%dm" (div $seconds 60)) (printf "%ds" $seconds) (eq (mod $seconds 60) 0)) -}}
{{- end -}}
{{- if eq $rule.alert "NpstreamNoLabels" -}}
{{- $hours := int64 $given.hoursWithoutLabels -}}
{{- $_ := set $rule "expr" ($rule.expr | replace "6h" (printf "%dh" $hours)) -}}
{{- $_ := set $rule.annotations "description" ($rule.annotations.description | replace "6 hours" (ternary "an hour" (printf "%d hours" $hours) (eq $hours 1))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
