{{- /*
Secrets that would be readable in the ConfigMap or in the description of a pod: a line for each. No value is repeated.
A reference to a mounted file may be seen.
*/ -}}
{{- define "npstream.secretProblems" -}}
{{- $mount := "mount it with `secrets` and write ${file:/etc/npstream/secrets/<name>/<key>}" -}}
{{- $kafka := .Values.settings.kafka -}}
{{- range $name := (include "npstream.rules" . | fromJson).secrets -}}
{{- $given := dig "security" $name nil $kafka | default "" -}}
{{- if and $given (not (contains "${file:/" $given)) }}
- settings.kafka.security.{{ $name }}: a secret in a ConfigMap or in the environment can be read by others; {{ $mount }}
{{- end -}}
{{- end -}}
{{- range $name, $given := dig "options" nil $kafka | default dict -}}
{{- if and (regexMatch "(?i)password|passphrase|secret|jaas|oauthbearer\\.config|key\\.pem$|^ssl_key$" $name) (not (contains "${file:/" (toString $given))) }}
- settings.kafka.options.{{ $name }}: a secret in a ConfigMap can be read by others; {{ $mount }}
{{- end -}}
{{- end -}}
{{- $registry := dig "events" "registry" nil .Values.settings | default dict -}}
{{- $given := dig "password" nil $registry | default "" -}}
{{- if and $given (not (contains "${file:/" $given)) }}
- settings.events.registry.password: a secret in a ConfigMap or in the environment can be read by others; {{ $mount }}
{{- end -}}
{{- if contains "@" (dig "url" "" $registry) }}
- settings.events.registry.url: write no login; user and password belong in settings.events.registry
{{- end -}}
{{- if contains "@" $kafka.bootstrap }}
- settings.kafka.bootstrap: write host:port; user and password belong in settings.kafka.security
{{- end -}}
{{- range .Values.env -}}
{{- $secret := regexMatch "(?i)password|passwd|passphrase|secret|token|credential|jaas|oauthbearer_+config|(api|private)_*key|key_+pem$" .name -}}
{{- $pointer := regexMatch "(?i)_(file|path|dir|location|name|url|uri|endpoint)$" .name -}}
{{- $given := get . "value" | toString -}}
{{- if and $secret $given (not $pointer) (not (contains "${file:/" $given)) }}
- env.{{ .name }}: a secret in the description of a pod can be read by others; take it from a Secret (valueFrom.secretKeyRef), or {{ $mount }}
{{- end -}}
{{- end -}}
{{- end -}}
