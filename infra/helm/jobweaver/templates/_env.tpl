{{- /*
The settings of a Deployment: .root, .name, .functions, .own (its values). Those of values come last, so that they win.
*/ -}}
{{- define "jobweaver.env" -}}
{{- $v := .root.Values -}}
{{- $name := include "jobweaver.name" .root -}}
{{- $env := dict "PORT" "8080" "METRICS_PORT" "9464" "GOMEMLIMIT" (include "jobweaver.memory" .own.resources.limits.memory) -}}
{{- $_ := set $env "QUEUES" (join "," $v.queues) -}}
{{- $_ := set $env "PULL_QUEUES" (join "," $v.pullQueues) -}}
{{- with $v.installation }}{{ $_ := set $env "INSTALLATION" . }}{{ end -}}
{{- $databases := include "jobweaver.databases" . | fromYaml -}}
{{- if and $databases (eq $v.database.roles "shared") -}}
{{- $_ := set $env "DATABASE_URL_FILE" "/etc/jobweaver/database/url" -}}
{{- else -}}
{{- range $key, $setting := $databases }}{{ $_ := set $env $setting (printf "/etc/jobweaver/database/%s" $key) }}{{ end -}}
{{- end -}}
{{- if and $databases $v.database.schemas }}{{ $_ := set $env "DATABASE_SCHEMAS" "true" }}{{ end -}}
{{- with include "jobweaver.brokers" .root }}{{ $_ := set $env "KAFKA_BROKERS" . }}{{ end -}}
{{- if $v.kafka.bundled.enabled }}{{ $_ := set $env "KAFKA_REPLICATION_FACTOR" "1" }}{{ end -}}
{{- if $v.kafka.tls.enabled }}{{ $_ := set $env "KAFKA_TLS_ENABLED" "true" }}{{ end -}}
{{- if $v.kafka.tls.caSecret }}{{ $_ := set $env "KAFKA_TLS_CA_FILE" "/etc/jobweaver/kafka-ca/ca.crt" }}{{ end -}}
{{- if $v.kafka.tls.clientSecret -}}
{{- $_ := set $env "KAFKA_TLS_CERT_FILE" "/etc/jobweaver/kafka-client/tls.crt" -}}
{{- $_ := set $env "KAFKA_TLS_KEY_FILE" "/etc/jobweaver/kafka-client/tls.key" -}}
{{- end -}}
{{- with $v.kafka.sasl.mechanism -}}
{{- $_ := set $env "KAFKA_SASL_MECHANISM" . -}}
{{- $_ := set $env "KAFKA_SASL_USERNAME" $v.kafka.sasl.username -}}
{{- $_ := set $env "KAFKA_SASL_PASSWORD_FILE" "/etc/jobweaver/kafka/password" -}}
{{- end -}}
{{- if include "jobweaver.hasSigning" .root -}}
{{- if include "jobweaver.runsOne" (dict "functions" .functions "among" (list "gateway" "notify" "runjob")) }}{{ $_ := set $env "WEBHOOK_SECRETS_FILE" "/etc/jobweaver/signing/webhook-secrets" }}{{ end -}}
{{- if include "jobweaver.runsOne" (dict "functions" .functions "among" (list "gateway" "pull" "runjob")) }}{{ $_ := set $env "CALLBACK_SECRETS_FILE" "/etc/jobweaver/signing/callback-secrets" }}{{ end -}}
{{- end -}}
{{- if and $v.keyset.existingSecret (include "jobweaver.readsKeyset" .) }}{{ $_ := set $env "ENCRYPTION_KEYSET_FILE" "/etc/jobweaver/keyset/keyset.json" }}{{ end -}}
{{- if and $v.publicUrl (include "jobweaver.runsOne" (dict "functions" .functions "among" (list "pull" "runjob"))) }}{{ $_ := set $env "CALLBACK_URL" (printf "%s/api/jobs/callback" (trimSuffix "/" $v.publicUrl)) }}{{ end -}}
{{- if has "gateway" .functions -}}
{{- $_ := set $env "SHUTDOWN_DELAY" "5s" -}}
{{- if $v.apiKey.existingSecret }}{{ $_ := set $env "BOOTSTRAP_API_KEY_FILE" "/etc/jobweaver/api-key/bootstrap-api-key" }}{{ end -}}
{{- if and (include "jobweaver.pulls" .root) (ne .name "single") }}{{ $_ := set $env "PULL_URL" (printf "http://%s-pull:8090" $name) }}{{ end -}}
{{- end -}}
{{- if and (eq .name "serve") (include "jobweaver.pulls" .root) }}{{ $_ := set $env "PULL_PORT" "8090" }}{{ end -}}
{{- if eq .name "pull" }}{{ $_ := set $env "PORT" "8090" }}{{ end -}}
{{- if has "relay" .functions -}}
{{- $_ := set $env "RELAY_DATABASES_FILE" "/etc/jobweaver/relay/databases" -}}
{{- $_ := set $env "GATEWAY_API_KEY_FILE" "/etc/jobweaver/relay/api-key" -}}
{{- if eq .name "relay" }}{{ $_ := set $env "GATEWAY_URL" (printf "http://%s:%v" $name $v.service.port) }}{{ end -}}
{{- end -}}
{{- $_ := mustMergeOverwrite $env $v.settings .own.settings -}}
{{- range $setting, $_ := mergeOverwrite (deepCopy $v.secretSettings) .own.secretSettings }}{{ $_ := set $env (printf "%s_FILE" $setting) (printf "/etc/jobweaver/settings/%s" $setting) }}{{ end -}}
{{- range $setting, $value := $env }}
- name: {{ $setting }}
  {{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $value = int64 $value }}{{ end }} {{- /* Helm reads 2000000 as 2e+06 */}}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- define "jobweaver.readsKeyset" -}}
{{ include "jobweaver.runsOne" (dict "functions" .functions "among" (list "gateway" "cron" "notify" "pull" "runjob")) }}
{{- end -}}

{{- /* The Secrets that a Deployment mounts: each name of a folder in /etc/jobweaver with its volume source. */ -}}
{{- define "jobweaver.secrets" -}}
{{- $v := .root.Values -}}
{{- with include "jobweaver.databases" . | fromYaml }}
database:
  secret:
    secretName: {{ include "jobweaver.databaseSecret" $.root }}
    items:
    {{- range $key, $_ := ternary (dict "url" "") . (eq $v.database.roles "shared") }}
    - {key: {{ $key }}, path: {{ $key }}}
    {{- end }}
{{- with $v.database.caSecret }}
database-ca: {secret: {secretName: {{ . }}, items: [{key: ca.crt, path: ca.crt}]}}
{{- end }}
{{- end }}
{{- with $v.kafka.tls.caSecret }}
kafka-ca: {secret: {secretName: {{ . }}, items: [{key: ca.crt, path: ca.crt}]}}
{{- end }}
{{- with $v.kafka.tls.clientSecret }}
kafka-client: {secret: {secretName: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}}
{{- end }}
{{- if $v.kafka.sasl.mechanism }}
kafka: {secret: {secretName: {{ $v.kafka.sasl.existingSecret }}, items: [{key: password, path: password}]}}
{{- end }}
{{- $signs := include "jobweaver.runsOne" (dict "functions" .functions "among" (list "gateway" "notify" "pull" "runjob")) }}
{{- if and (include "jobweaver.hasSigning" .root) $signs }}
signing:
  secret:
    secretName: {{ include "jobweaver.signingSecret" .root }}
    items:
    {{- if ne .name "pull" }}
    - {key: webhook-secrets, path: webhook-secrets}
    {{- end }}
    {{- if ne .name "notify" }}
    - {key: callback-secrets, path: callback-secrets}
    {{- end }}
{{- end }}
{{- if and $v.keyset.existingSecret (include "jobweaver.readsKeyset" .) }}
keyset: {secret: {secretName: {{ $v.keyset.existingSecret }}, items: [{key: keyset.json, path: keyset.json}]}}
{{- end }}
{{- if and $v.apiKey.existingSecret (has "gateway" .functions) }}
api-key: {secret: {secretName: {{ $v.apiKey.existingSecret }}, items: [{key: bootstrap-api-key, path: bootstrap-api-key}]}}
{{- end }}
{{- if has "relay" .functions }}
relay: {secret: {secretName: {{ $v.relay.existingSecret }}, items: [{key: databases, path: databases}, {key: api-key, path: api-key}]}}
{{- end }}
{{- with mergeOverwrite (deepCopy $v.secretSettings) .own.secretSettings }}
settings:
  projected:
    sources:
    {{- range $setting, $from := . }}
    - secret: {name: {{ $from.secret }}, items: [{key: {{ $from.key }}, path: {{ $setting }}}]}
    {{- end }}
{{- end }}
{{- end -}}
