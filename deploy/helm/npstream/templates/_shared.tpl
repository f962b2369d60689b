{{- /*
What the worker and its jobs have in common; as the values are, it meets PodSecurity `restricted`. With `before`, for a pod
that runs before the release is installed: there is no account of its own yet, and what is missing is for the command in it
to report, since a pod would wait for it forever.
*/ -}}
{{- define "npstream.podCommon" -}}
{{- $before := .before | default false -}}
{{- with .root -}}
serviceAccountName: {{ ternary (default "default" .Values.serviceAccount.name) (include "npstream.serviceAccount" .) $before | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "npstream.podSecurityContext" . | fromYaml }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: settings
    configMap:
      name: {{ print (include "npstream.fullname" .) (ternary "-check" "" $before) | quote }}
  {{- range .Values.secrets }}
  - name: "secret-{{ .name }}"
    secret:
      secretName: {{ .secretName | quote }}
      # Readable by the worker's group, written by nobody.
      defaultMode: 0440
      {{- if $before }}
      optional: true
      {{- end }}
  {{- end }}
  {{- range .Values.files }}
  - name: "file-{{ .name }}"
    configMap:
      name: {{ .configMapName | quote }}
      {{- if $before }}
      optional: true
      {{- end }}
  {{- end }}
  - name: tmp
    emptyDir:
      sizeLimit: 128Mi
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- /* OpenShift gives every namespace users and groups of its own and refuses pods that name others. */ -}}
{{- define "npstream.podSecurityContext" -}}
{{- $given := .Values.podSecurityContext -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" -}}
{{- $given = omit $given "runAsUser" "runAsGroup" "fsGroup" -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}

{{- define "npstream.container" -}}
image: {{ include "npstream.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  # Static members and transactions are named after it: the same after a restart, different in every pod.
  - name: NPSTREAM__KAFKA__WORKER_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- if not (dig "http" "host" "" .Values.settings) }}
  # Probes and Prometheus come from outside the pod; the network policy says who else may.
  - name: NPSTREAM__HTTP__HOST
    value: 0.0.0.0
  {{- end }}
  - name: OPENBLAS_NUM_THREADS
    value: "1"
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
# The last lines of the log say why it ended, also in `kubectl describe pod`.
terminationMessagePolicy: FallbackToLogsOnError
resources:
  requests:
    cpu: {{ .Values.resources.cpu | quote }}
    memory: {{ .Values.resources.memory | quote }}
  limits:
    memory: {{ .Values.resources.memory | quote }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: settings
    mountPath: /etc/npstream/settings.yaml
    subPath: settings.yaml
    readOnly: true
  {{- range .Values.secrets }}
  - name: "secret-{{ .name }}"
    mountPath: "/etc/npstream/secrets/{{ .name }}"
    readOnly: true
  {{- end }}
  {{- range .Values.files }}
  - name: "file-{{ .name }}"
    mountPath: "/etc/npstream/files/{{ .name }}"
    readOnly: true
  {{- end }}
  - name: tmp
    mountPath: /tmp
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
