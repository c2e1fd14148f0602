{{- /* One process without root, shell, writable files or access to Kubernetes. */ -}}
{{- define "jobweaver.locked" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* What the pods of Deployments and Jobs share. */ -}}
{{- define "jobweaver.account-of-pod" -}}
serviceAccountName: {{ include "jobweaver.account" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* What makes sure that the values can work together. */ -}}
{{- define "jobweaver.check" -}}
{{- $v := .Values -}}
{{- $brokers := include "jobweaver.brokers" . -}}
{{- if and (eq $v.mode "single") $brokers }}{{ fail "mode single uses the broker in its process: for kafka choose the mode serve, groups or functions" }}{{ end -}}
{{- if and (ne $v.mode "single") (not $brokers) }}{{ fail (printf "mode %s needs kafka.brokers or kafka.bundled.enabled" $v.mode) }}{{ end -}}
{{- if not (or $v.database.existingSecret $v.database.url $v.database.bundled.enabled) }}{{ fail "the database is not set: database.existingSecret, database.url or database.bundled.enabled" }}{{ end -}}
{{- if and (ne $v.database.roles "shared") (not $v.database.existingSecret) }}{{ fail (printf "database.roles %s needs database.existingSecret, with an address for each" $v.database.roles) }}{{ end -}}
{{- if and (eq $v.database.roles "functions") (ne $v.mode "functions") }}{{ fail "database.roles functions needs the mode functions: a process has one role for each database" }}{{ end -}}
{{- if and $v.kafka.sasl.mechanism (not $v.kafka.sasl.existingSecret) }}{{ fail "kafka.sasl.mechanism needs kafka.sasl.existingSecret, with the key password" }}{{ end -}}
{{- if and $v.ingress.enabled (not $v.ingress.host) }}{{ fail "ingress.enabled needs ingress.host" }}{{ end -}}
{{- if and $v.autoscaling.keda.enabled (eq $v.mode "single") }}{{ fail "autoscaling needs kafka: in the mode single one process has all the work" }}{{ end -}}
{{- range $name, $_ := $v.components -}}
{{- if not (has $name (list "single" "serve" "api" "scheduler" "worker" "gateway" "projection" "bulk" "cron" "notify" "ingest" "dispatch" "outcome" "command" "watchdog" "retention" "runjob" "pull" "relay")) }}{{ fail (printf "components.%s is no Deployment of any mode" $name) }}{{ end -}}
{{- end -}}
{{- end -}}
