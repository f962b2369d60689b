{{- /* One worker. The same for both workloads; meets PodSecurity `restricted`. */ -}}
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
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "npstream.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds | int64 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: worker
      image: {{ include "npstream.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, --config, /etc/npstream/settings.yaml]
      env:
        # Static members and transactions are named after it: the same after a restart, different in every pod.
        - name: NPSTREAM__KAFKA__SLOT
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
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: {{ $facts.port | int64 }}
          protocol: TCP
      # Alive means that the loop turns, brokers or not; see /livez. The first compile may take a while.
      startupProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 10
        timeoutSeconds: 3
        failureThreshold: 3
      # Ready means that the partitions are restored; it only paces rollouts.
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
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
        - name: secret-{{ .name }}
          mountPath: /etc/npstream/secrets/{{ .name }}
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: settings
      configMap:
        name: {{ include "npstream.fullname" . }}
    {{- range .Values.secrets }}
    - name: secret-{{ .name }}
      secret:
        secretName: {{ .secretName }}
        # Readable by the worker's group, written by nobody.
        defaultMode: 0440
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: 128Mi
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
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
