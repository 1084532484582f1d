{{/* The configuration file, what is computed from it, and what is refused. */}}

{{- define "baton.configFile" -}}
{{- include "baton.refuse" . -}}
{{- $config := deepCopy .Values.config -}}
{{- if not (hasKey $config "config_revision") -}}
{{- $config = set $config "config_revision" .Release.Revision -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Without the revision: an upgrade that does not change the configuration restarts no pod. */}}
{{- define "baton.podAnnotations" -}}
checksum/baton-config: {{ toYaml (omit .Values.config "config_revision") | sha256sum }}
{{- end -}}

{{- define "baton.httpPort" -}}
{{- regexFind "[0-9]+$" .Values.config.http.address -}}
{{- end -}}

{{/* It covers the drain, which preStop waits for, and then the stop of app and sidecar. */}}
{{- define "baton.terminationGracePeriodSeconds" -}}
{{- $drain := dig "election" "drain" "20s" .Values.config -}}
{{- $seconds := include "baton.seconds" (dict "key" "config.election.drain" "text" $drain) -}}
{{- add (ceil (float64 $seconds)) .Values.sidecar.shutdownMarginSeconds -}}
{{- end -}}

{{/* Seconds of a duration such as 1m30s. RE2 has no lookahead, so "ms" is replaced by one letter first. */}}
{{- define "baton.seconds" -}}
{{- $text := toString .text | replace "ms" "u" -}}
{{- if not (regexMatch "^([0-9.]+d)?([0-9.]+h)?([0-9.]+m)?([0-9.]+s)?([0-9.]+u)?$" $text) -}}
{{- fail (printf "%s: %q is not a duration; allowed is one such as 500ms, 20s or 1m30s" .key (toString .text)) -}}
{{- end -}}
{{- $sum := 0.0 -}}
{{- range $unit, $size := dict "d" 86400 "h" 3600 "m" 60 "s" 1 "u" 0.001 -}}
{{- with regexFind (printf "[0-9.]+%s" $unit) $text -}}
{{- $sum = addf $sum (mulf (float64 (trimSuffix $unit .)) $size) -}}
{{- end -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{- define "baton.refuse" -}}
{{- $config := .Values.config -}}
{{- if not $config.cluster -}}
{{- fail "config.cluster: is not set; it names your app's cluster, such as orders" -}}
{{- end -}}
{{- if not .Values.secrets.postgres.name -}}
{{- fail "secrets.postgres.name: is not set; name a Secret that holds the Postgres URL (kubectl create secret generic orders-db --from-file=url=FILE)" -}}
{{- end -}}
{{- $moved := dict "postgres.url" "postgres" "postgres.direct_url" "postgresDirect" "redis.url" "redis" "app.token_file" "appToken" "api.token_file" "apiToken" -}}
{{- range $key, $secret := $moved -}}
{{- $parts := splitList "." $key -}}
{{- if dig (first $parts) (last $parts) "" $config -}}
{{- fail (printf "config.%s: belongs into a Secret, not into a ConfigMap; name the Secret in secrets.%s" $key $secret) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.migration.enabled (ne (dig "postgres" "migrate" "auto" $config) "never") -}}
{{- fail "config.postgres.migrate: the migration Job does it; allowed is never, or migration.enabled: false" -}}
{{- end -}}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])" $config.http.address -}}
{{- fail (printf "config.http.address: the kubelet cannot probe %s; allowed is 0.0.0.0:PORT or [::]:PORT" $config.http.address) -}}
{{- end -}}
{{- if and (eq .Values.sidecar.mode "native") (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "sidecar.mode: native sidecars need Kubernetes 1.29, this is %s; allowed is classic" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and .Values.example.enabled (not .Values.example.image) -}}
{{- fail "example.image: is not set; give the image of your app, or example.enabled: false if your own chart runs it" -}}
{{- end -}}
{{- end -}}
