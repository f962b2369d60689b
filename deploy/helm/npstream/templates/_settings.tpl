{{- /* What the settings model says of itself: numbers and their bounds, refused options, sizes; see deploy/helm/schema.py. */ -}}
{{- define "npstream.rules" -}}
{{- .Files.Get "files/settings.json" -}}
{{- end -}}

{{- /* The worker's settings as YAML, with numbers where `--set` made text of them. */ -}}
{{- define "npstream.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- range $path, $limits := (include "npstream.rules" . | fromJson).numbers -}}
{{- $key := splitList "." $path | last -}}
{{- with get $settings (splitList "." $path | first) -}}
{{- if and (hasKey . $key) (kindIs "string" (get . $key)) -}}
{{- $_ := set . $key (ternary (get . $key | int64) (get . $key | float64) (eq $limits.type "integer")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- /*
What the worker would refuse at its start and values.schema.json cannot say: a line for each problem.
tests/deploy/test_same_rules.py holds it against the worker's own rules.
*/ -}}
{{- define "npstream.settingsProblems" -}}
{{- $given := .Values.settings -}}
{{- $settings := include "npstream.settings" . | fromYaml -}}
{{- $rules := include "npstream.rules" . | fromJson -}}
{{- range $path, $limits := $rules.numbers -}}
{{- $value := dig (splitList "." $path | first) (splitList "." $path | last) nil $given -}}
{{- if kindIs "string" $value -}}
{{- include "npstream.boundProblems" (dict "path" (print "settings." $path) "value" $value "limits" $limits) -}}
{{- else if and (kindIs "float64" $value) (eq $limits.type "integer") -}}
{{- /* Helm reads numbers of a file as floating point, which is exact below 2 to the power of 53. */ -}}
{{- if ge $value 9007199254740992.0 }}
- settings.{{ $path }}: put it in quotes: Helm would make another number of one that large
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "npstream.modelProblems" (dict "settings" $settings "rules" $rules) -}}
{{- include "npstream.connectionProblems" (dict "kafka" $settings.kafka "rules" $rules "env" .Values.env) -}}

{{- include "npstream.registryProblems" (dict "settings" $settings "env" .Values.env) -}}

{{- $topics := (include "npstream.facts" . | fromYaml).topics -}}
{{- $four := omit $topics "labels" | values -}}
{{- if lt (uniq $four | len) 4 }}
- settings.topics: one name is used for more than one topic; each of the four needs its own: {{ sortAlpha $four | join ", " }}
{{- end -}}
{{- if and $topics.labels (has $topics.labels $four) }}
- settings.labels.topic: {{ $topics.labels }} is one of the four topics; labels need one of their own
{{- end -}}
{{- if not $topics.labels }}
{{- range $name := list "id" "label" }}
{{- if dig "labels" $name nil $settings }}
- settings.labels.{{ $name }}: is for records of labels.topic, which is not given
{{- end -}}
{{- end -}}
{{- end -}}
{{- $features := dig "events" "features" nil $settings | default list -}}
{{- if lt (uniq $features | len) (len $features) }}
- settings.events.features: a name is there twice
{{- end -}}
{{- $poll := dig "worker" "poll_ms" 20 $settings | int64 -}}
{{- $transaction := dig "kafka" "transaction_timeout_ms" 15000 $settings | int64 -}}
{{- if ge $poll $transaction }}
- settings.worker.poll_ms: {{ $poll }} must be below settings.kafka.transaction_timeout_ms ({{ $transaction }})
{{- end -}}
{{- $start := dig "start" "earliest" $settings -}}
{{- if regexMatch "^[0-9]" $start -}}
{{- if (toDate "2006-01-02" (substr 0 10 $start)).IsZero }}
- settings.start: {{ $start }} is no day of the calendar
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A number given as text against its bounds. */ -}}
{{- define "npstream.boundProblems" -}}
{{- $number := float64 .value -}}
{{- range $limit, $bound := pick .limits "minimum" "exclusiveMinimum" "maximum" "exclusiveMaximum" -}}
{{- $bound = float64 $bound -}}
{{- if and (eq $limit "minimum") (lt $number $bound) }}
- {{ $.path }}: {{ $.value }} must be at least {{ $bound }}
{{- else if and (eq $limit "exclusiveMinimum") (le $number $bound) }}
- {{ $.path }}: {{ $.value }} must be above {{ $bound }}
{{- else if and (eq $limit "maximum") (gt $number $bound) }}
- {{ $.path }}: {{ $.value }} must be at most {{ $bound }}
{{- else if and (eq $limit "exclusiveMaximum") (ge $number $bound) }}
- {{ $.path }}: {{ $.value }} must be below {{ $bound }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Parameters that do not go together, or with the features, or would make a snapshot that is too large. */ -}}
{{- define "npstream.modelProblems" -}}
{{- $model := .settings.model -}}
{{- $preset := dig "preset" "plus" $model -}}
{{- $features := dig "events" "features" nil .settings | default list -}}
{{- $d := dig "d" (len $features) $model | int64 -}}
{{- if eq $preset "external" -}}
{{- if ne $d 0 }}
- settings.model.d: {{ $d }} must be 0 with preset external, whose events bring a score instead of features
{{- end -}}
{{- if dig "one_class" false $model }}
- settings.model.one_class: needs features; preset external has none
{{- end -}}
{{- else if lt $d 1 }}
- settings.model.d: say how many features an event has, or name them in settings.events.features
{{- end -}}
{{- if and $features (ne $d (len $features | int64)) }}
- settings.model.d: {{ $d }} given, {{ len $features }} names in settings.events.features; leave d out to let them count
{{- end -}}
{{- if and (eq $preset "plus") (has (dig "input" "zscore" $model) (list "raw" "unit")) }}
- settings.model.input: {{ $model.input }} is for preset paper; plus always standardises (zscore)
{{- end -}}
{{- if eq $preset "paper" -}}
{{- range list "budget" "charge" -}}
{{- if hasKey $model . }}
- settings.model.{{ . }}: has no effect with preset paper; leave it out
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne $preset "paper" -}}
{{- if eq (dig "gamma_update" "window" $model) "stochastic" }}
- settings.model.gamma_update: stochastic is for preset paper; use window
{{- end -}}
{{- if gt (dig "lam" 0.0 $model | float64) 0.0 }}
- settings.model.lam: {{ $model.lam }} is for preset paper; use 0
{{- end -}}
{{- end -}}
{{- $bytes := dig "events" "max_bytes" 262144 .settings | int64 -}}
{{- if and (eq (dig "events" "format" "json" .settings) "f32") (gt (mul 4 (max $d 1)) $bytes) }}
- settings.events.max_bytes: {{ $bytes }} is too small for {{ max $d 1 }} float32 values
{{- end -}}

{{- /* The directions are nearly all of a model; the worker counts the rest too. */ -}}
{{- $directions := mul 8 $d (dig "D" 100 $model | int64) -}}
{{- $waiting := dig "labels" "buffer_max" 10000 .settings | int64 -}}
{{- $each := add .rules.snapshot.observation (mul .rules.snapshot.feature $d) -}}
{{- $max := int64 .rules.snapshot.max -}}
{{- if gt $directions $max }}
- settings.model.D: {{ $model.D }} units of {{ $d }} features: a snapshot may have {{ div $max 1048576 }} MB; lower D or d
{{- end -}}
{{- $room := int64 .rules.snapshot.buffer_max -}}
{{- if gt (mul $waiting $each) $room }}
- settings.labels.buffer_max: {{ $waiting }} observations of {{ $d }} features: they may take {{ div $room 1048576 }} MB; lower it to {{ div $room $each }} or less
{{- end -}}
{{- end -}}

{{- /* A connection that is only half described, and options that exactly-once rests on. */ -}}
{{- define "npstream.connectionProblems" -}}
{{- $security := dig "security" nil .kafka | default dict -}}
{{- $protocol := dig "protocol" "PLAINTEXT" $security -}}
{{- /* A variable may bring part of the login. */ -}}
{{- $names := list -}}
{{- range .env -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- $mechanism := dig "mechanism" nil $security | default "" -}}
{{- $login := get .rules.logins $mechanism | default (dict "needs" list "takes" list) -}}
{{- $set := dict -}}
{{- range $one := .rules.logins -}}
{{- range $name := concat $one.needs $one.takes -}}
{{- $variable := has (print "NPSTREAM__KAFKA__SECURITY__" (upper $name)) $names -}}
{{- $_ := set $set $name (or $variable (not (kindIs "invalid" (dig $name nil $security)))) -}}
{{- end -}}
{{- end -}}
{{- if not (hasPrefix "SASL" $protocol) -}}
{{- range $name, $given := set $set "mechanism" (ne $mechanism "") -}}
{{- if $given }}
- settings.kafka.security.{{ $name }}: needs protocol SASL_SSL or SASL_PLAINTEXT
{{- end -}}
{{- end -}}
{{- else if and (not $mechanism) (not (has "NPSTREAM__KAFKA__SECURITY__MECHANISM" $names)) }}
- settings.kafka.security.mechanism: missing; protocol {{ $protocol }} needs it
{{- else if $mechanism -}}
{{- range $name := $login.needs -}}
{{- if not (get $set $name) }}
- settings.kafka.security.{{ $name }}: missing; mechanism {{ $mechanism }} needs it
{{- end -}}
{{- end -}}
{{- range $name, $given := $set -}}
{{- if and $given (not (has $name (concat $login.needs $login.takes))) }}
- settings.kafka.security.{{ $name }}: has no effect with mechanism {{ $mechanism }}
{{- end -}}
{{- end -}}
{{- if and (eq $mechanism "AWS_MSK_IAM") (ne $protocol "SASL_SSL") }}
- settings.kafka.security.protocol: mechanism {{ $mechanism }} needs SASL_SSL
{{- end -}}
{{- end -}}
{{- range $name := list "ca_file" "cert_file" "key_file" -}}
{{- if not (or (hasSuffix "SSL" $protocol) (kindIs "invalid" (dig $name nil $security))) }}
- settings.kafka.security.{{ $name }}: needs protocol SSL or SASL_SSL
{{- end -}}
{{- end -}}
{{- if ne (kindIs "invalid" (dig "cert_file" nil $security)) (kindIs "invalid" (dig "key_file" nil $security)) }}
- settings.kafka.security: cert_file and key_file: one without the other; a client certificate needs its key
{{- end -}}
{{- range $name, $value := dig "options" nil .kafka | default dict -}}
{{- $reason := ternary "npstream sets the callbacks itself" (get $.rules.options $name) (hasSuffix "_cb" $name) -}}
{{- with $reason }}
- settings.kafka.options.{{ $name }}: cannot be changed: {{ . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A schema registry that is needed and not named, or only half described. */ -}}
{{- define "npstream.registryProblems" -}}
{{- $registry := dig "events" "registry" nil .settings | default dict -}}
{{- /* A variable may bring part of it. */ -}}
{{- $set := dict -}}
{{- range $name := list "url" "username" "password" -}}
{{- $_ := set $set $name (not (kindIs "invalid" (dig $name nil $registry))) -}}
{{- range $.env -}}
{{- if eq .name (print "NPSTREAM__EVENTS__REGISTRY__" (upper $name)) -}}
{{- $_ := set $set $name true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $set.url -}}
{{- $format := dig "events" "format" "json" .settings -}}
{{- if has $format (list "avro" "protobuf") }}
- settings.events.registry: missing; format {{ $format }} needs the url of a schema registry
{{- end -}}
{{- if eq (dig "decisions" "format" "json" .settings) "avro" }}
- settings.events.registry: missing; decisions.format avro needs the url of a schema registry
{{- end -}}
{{- end -}}
{{- $url := dig "url" "" $registry -}}
{{- if and $url (not (regexMatch "^https?://|[$][{]" $url)) }}
- settings.events.registry.url: must begin with http:// or https://
{{- end -}}
{{- if ne $set.username $set.password }}
- settings.events.registry: username and password: one without the other; a login needs both
{{- end -}}
{{- if and (dig "ca_file" nil $registry) (hasPrefix "http://" $url) }}
- settings.events.registry.ca_file: needs a url that begins with https://
{{- end -}}
{{- end -}}
