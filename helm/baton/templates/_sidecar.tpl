{{/*
What a pod needs to have a Baton sidecar. Your own chart, with this one as a dependency, includes
these templates with `.Subcharts.baton`; docs/kubernetes.md shows where each one goes.
*/}}

{{/* For `initContainers`: the sidecar, if it is a native one. */}}
{{- define "baton.initContainers" -}}
{{- if eq .Values.sidecar.mode "native" -}}
{{ include "baton.sidecar" . }}
{{- end -}}
{{- end -}}

{{/* For `containers`: the sidecar, if it is a classic one. */}}
{{- define "baton.containers" -}}
{{- if eq .Values.sidecar.mode "classic" -}}
{{ include "baton.sidecar" . }}
{{- end -}}
{{- end -}}

{{- define "baton.sidecar" -}}
{{- include "baton.refuse" . -}}
- name: baton
  image: {{ include "baton.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [run]
  {{- if eq .Values.sidecar.mode "native" }}
  restartPolicy: Always
  {{- end }}
  env:
    - {name: BATON_CONFIG, value: /etc/baton/baton.yaml}
    # Of the sidecar, and of the `baton` commands run in its container.
    - {name: BATON_API_ADDRESS, value: {{ .Values.config.api.address | quote }}}
    {{- include "baton.secretFiles" (dict "secrets" .Values.secrets "only" (list "postgres" "postgresDirect" "redis" "appToken" "apiToken")) | nindent 4 }}
    {{- with .Values.sidecar.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - {name: baton-http, containerPort: {{ include "baton.httpPort" . }}}
  startupProbe:
    httpGet: {path: /startupz, port: baton-http}
    periodSeconds: 1
    timeoutSeconds: 2
    failureThreshold: 60
  readinessProbe:
    httpGet: {path: /readyz, port: baton-http}
    periodSeconds: 5
    timeoutSeconds: 2
    failureThreshold: 2
  livenessProbe:
    httpGet: {path: /livez, port: baton-http}
    periodSeconds: 10
    timeoutSeconds: 3
    failureThreshold: 3
  lifecycle:
    preStop:
      exec:
        command: [baton, drain, --wait]
  resources:
    {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext:
    runAsUser: 65532
    runAsGroup: 65532
    {{- include "baton.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: baton-config, mountPath: /etc/baton, readOnly: true}
    - {name: baton-secrets, mountPath: /run/secrets/baton, readOnly: true}
    - {name: baton-run, mountPath: /run/baton}
{{- end -}}

{{/* For the `env` of your app's container: where the sidecar is, and where it looks for the app. */}}
{{- define "baton.appEnv" -}}
- {name: BATON_API_ADDRESS, value: {{ .Values.config.api.address | quote }}}
- {name: BATON_APP_ADDRESS, value: {{ .Values.config.app.address | quote }}}
{{- with include "baton.secretFiles" (dict "secrets" .Values.secrets "only" (list "appToken" "apiToken")) }}
{{ . }}
{{- end }}
{{- end -}}

{{/* For the `volumeMounts` of your app's container. */}}
{{- define "baton.appVolumeMounts" -}}
- {name: baton-run, mountPath: /run/baton}
{{- if or .Values.secrets.appToken.name .Values.secrets.apiToken.name }}
- {name: baton-tokens, mountPath: /run/secrets/baton, readOnly: true}
{{- end }}
{{- end -}}

{{/* For the `volumes` of the pod. */}}
{{- define "baton.volumes" -}}
- name: baton-config
  configMap: {name: {{ include "baton.fullname" . }}}
- name: baton-run
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: baton-secrets
  {{- include "baton.projected" (dict "secrets" .Values.secrets "only" (list "postgres" "postgresDirect" "redis" "appToken" "apiToken")) | nindent 2 }}
{{- if or .Values.secrets.appToken.name .Values.secrets.apiToken.name }}
- name: baton-tokens
  {{- include "baton.projected" (dict "secrets" .Values.secrets "only" (list "appToken" "apiToken")) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* For the `securityContext` of the pod: the group by which both containers reach the sockets. */}}
{{- define "baton.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Pod Security "restricted", and a read-only root file system. */}}
{{- define "baton.restricted" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Each secret as a variable that names its file … */}}
{{- define "baton.secretFiles" -}}
{{- $variables := dict "postgres" "POSTGRES_URL" "postgresDirect" "POSTGRES_DIRECT_URL" "redis" "REDIS_URL" "appToken" "APP_TOKEN" "apiToken" "API_TOKEN" -}}
{{- $lines := list -}}
{{- range $name := .only -}}
{{- if (get $.secrets $name).name -}}
{{- $lines = append $lines (printf "- {name: BATON_%s_FILE, value: /run/secrets/baton/%s}" (get $variables $name) $name) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* … and the volume that holds these files. */}}
{{- define "baton.projected" -}}
projected:
  defaultMode: 0440
  sources:
    {{- range $name := .only }}
    {{- with get $.secrets $name }}
    {{- if .name }}
    - secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: {{ $name }}}]}
    {{- end }}
    {{- end }}
    {{- end }}
{{- end -}}
