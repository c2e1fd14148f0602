{{- define "jobweaver.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "jobweaver.selector" -}}
app.kubernetes.io/name: jobweaver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "jobweaver.labels" -}}
{{ include "jobweaver.selector" . }}
app.kubernetes.io/part-of: jobweaver
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "jobweaver.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "jobweaver.name" .) "default" .Values.serviceAccount.create) }}
{{- end -}}

{{- define "jobweaver.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* The Secret with the addresses of the databases. */ -}}
{{- define "jobweaver.databaseSecret" -}}
{{ .Values.database.existingSecret | default (printf "%s-database" (include "jobweaver.name" .)) }}
{{- end -}}

{{- define "jobweaver.signingSecret" -}}
{{ .Values.signing.existingSecret | default (printf "%s-signing" (include "jobweaver.name" .)) }}
{{- end -}}

{{- /* serve keeps the secrets of signatures in the database, where its role may read them there. */ -}}
{{- define "jobweaver.hasSigning" -}}
{{- if or .Values.signing.existingSecret (ne .Values.database.roles "shared") }}true{{ end -}}
{{- end -}}

{{- define "jobweaver.brokers" -}}
{{- if .Values.kafka.bundled.enabled -}}
{{ include "jobweaver.name" . }}-kafka:9092
{{- else -}}
{{ join "," .Values.kafka.brokers }}
{{- end -}}
{{- end -}}

{{- /* A text of a Secret that the chart made before, or a new one: .key of .secret. */ -}}
{{- define "jobweaver.kept" -}}
{{- $there := (lookup "v1" "Secret" .root.Release.Namespace .secret) | default dict -}}
{{- get ($there.data | default dict) .key | default (b64enc .new) -}}
{{- end -}}
