{{- /* The functions of a process, by the names that serve takes; and the queues of which none is for pull. */ -}}
{{- define "jobweaver.groups" -}}
api: [gateway, projection, bulk, cron, notify]
scheduler: [ingest, dispatch, outcome, command, watchdog, retention]
worker: [runjob]
{{- end -}}

{{- define "jobweaver.pulls" -}}
{{- range .Values.queues }}{{ if has . $.Values.pullQueues }}true{{ end }}{{ end -}}
{{- end -}}

{{- /* The Deployments of the mode: each name with its functions. */ -}}
{{- define "jobweaver.components" -}}
{{- $groups := include "jobweaver.groups" . | fromYaml -}}
{{- $mode := .Values.mode -}}
{{- $all := concat $groups.api $groups.scheduler $groups.worker -}}
{{- $beside := list -}}
{{- if include "jobweaver.pulls" . }}{{ $beside = append $beside "pull" }}{{ end -}}
{{- if .Values.relay.existingSecret }}{{ $beside = append $beside "relay" }}{{ end -}}
{{- $found := dict -}}
{{- if has $mode (list "single" "serve") -}}
{{- $_ := set $found $mode (concat $all $beside) -}}
{{- else -}}
{{- if eq $mode "groups" }}{{ $found = $groups }}{{ end -}}
{{- range ternary $beside (concat $all $beside) (eq $mode "groups") }}{{ $_ := set $found . (list .) }}{{ end -}}
{{- end -}}
{{ toYaml $found }}
{{- end -}}

{{- /* The names of those of .functions that are in .among; empty: none. */ -}}
{{- define "jobweaver.runsOne" -}}
{{- range .among }}{{ if has . $.functions }}{{ . }} {{ end }}{{ end -}}
{{- end -}}

{{- /* The databases of .functions: their settings' prefixes by the Secret's keys. */ -}}
{{- define "jobweaver.databases" -}}
{{- $groups := include "jobweaver.groups" .root | fromYaml -}}
{{- $of := dict "api" $groups.api "scheduler" $groups.scheduler "worker" (list "runjob" "pull") -}}
{{- $found := dict -}}
{{- range $service, $members := $of -}}
{{- range $members -}}
{{- if has . $.functions -}}
{{- $_ := set $found (ternary . $service (eq $.root.Values.database.roles "functions")) (printf "%s_DATABASE_URL_FILE" (upper $service)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toYaml $found }}
{{- end -}}

{{- /* The values of the Deployment .name: defaults, and over these its own. */ -}}
{{- define "jobweaver.values" -}}
{{ mergeOverwrite (deepCopy .root.Values.defaults) (get .root.Values.components .name | default dict) | toYaml }}
{{- end -}}

{{- /* How the Deployment .name is scaled: keda (by lag), cpu, or not at all. A pod of single has all the work. */ -}}
{{- define "jobweaver.scaling" -}}
{{- $keda := list "worker" "runjob" "ingest" "outcome" "command" "projection" -}}
{{- $cpu := list "serve" "api" "gateway" "worker" "runjob" -}}
{{- if and .root.Values.autoscaling.keda.enabled (has .name $keda) }}keda{{ else if and .root.Values.autoscaling.cpu.enabled (has .name $cpu) }}cpu{{ end -}}
{{- end -}}

{{- /* Go's collector has to know where memory ends: at seven tenths of the limit; the kernel's buffers need room, too. */ -}}
{{- define "jobweaver.memory" -}}
{{- $mebibytes := trimSuffix "Mi" . -}}
{{- if hasSuffix "Gi" . }}{{ $mebibytes = mul 1024 (trimSuffix "Gi" . | int) }}{{ end -}}
{{ div (mul 7 ($mebibytes | int)) 10 }}MiB
{{- end -}}
