{{- /* One worker. The same for both workloads. */ -}}
{{- define "npstream.pod" -}}
{{- $facts := include "npstream.facts" . | fromYaml -}}
metadata:
  labels:
    {{- include "npstream.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A change of settings takes effect at a restart, so it must cause one.
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum | quote }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds | int64 }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- include "npstream.podCommon" (dict "root" .) | nindent 2 }}
  containers:
    - name: worker
      args: [run, --config, /etc/npstream/settings.yaml]
      ports:
        - name: http
          containerPort: {{ $facts.port | int64 }}
          protocol: TCP
      # Started means that the loop has turned once. Liveness waits for it: a kill in the middle of a compile keeps
      # nothing, so a slow node would never get through.
      startupProbe:
        httpGet: {path: /startz, port: http}
        periodSeconds: 5
        timeoutSeconds: {{ .Values.probes.timeoutSeconds | int64 }}
        failureThreshold: {{ divf .Values.startSeconds 5 | ceil | int64 }}
      # Alive means that the loop turns, brokers or not.
      livenessProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: {{ .Values.probes.liveness.periodSeconds | int64 }}
        timeoutSeconds: {{ .Values.probes.timeoutSeconds | int64 }}
        failureThreshold: {{ .Values.probes.liveness.failureThreshold | int64 }}
      # Ready means that the partitions are restored; it only paces rollouts.
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: {{ .Values.probes.readiness.periodSeconds | int64 }}
        timeoutSeconds: {{ .Values.probes.timeoutSeconds | int64 }}
        failureThreshold: {{ .Values.probes.readiness.failureThreshold | int64 }}
      {{- include "npstream.container" . | nindent 6 }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "npstream.selector" $ | nindent 10 }}
    {{- end }}
    {{- end }}
{{- end -}}
