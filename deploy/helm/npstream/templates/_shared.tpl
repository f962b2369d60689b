{{- /* What the worker and a job of the same settings have in common; meets PodSecurity `restricted`. */ -}}
{{- define "npstream.podCommon" -}}
serviceAccountName: {{ include "npstream.serviceAccount" . | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: settings
    configMap:
      name: {{ include "npstream.fullname" . | quote }}
  {{- range .Values.secrets }}
  - name: "secret-{{ .name }}"
    secret:
      secretName: {{ .secretName | quote }}
      # Readable by the worker's group, written by nobody.
      defaultMode: 0440
  {{- end }}
  {{- range .Values.files }}
  - name: "file-{{ .name }}"
    configMap:
      name: {{ .configMapName | quote }}
  {{- end }}
  - name: tmp
    emptyDir:
      sizeLimit: 128Mi
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
resources:
  requests:
    cpu: {{ .Values.resources.cpu | quote }}
    memory: {{ .Values.resources.memory | quote }}
  limits:
    memory: {{ .Values.resources.memory | quote }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
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
{{- end -}}
