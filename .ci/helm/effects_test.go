package helm

// effects has each value of values.yaml, and what it changes.
var effects = []effect{
	{"mode", "mode: groups", serve, "Deployment jobweaver-scheduler " + container + "args/2", "scheduler"},

	{"image.repository", "image: {repository: r.example.org/jw}", external, single + container + "image", "r.example.org/jw:0.1.0"},
	{"image.tag", "image: {tag: v7}", external, single + container + "image", "ghcr.io/jobweaver/jobweaver:v7"},
	{"image.digest", "image: {digest: 'sha256:" + sum + "'}", external, single + container + "image", "ghcr.io/jobweaver/jobweaver@sha256:" + sum},
	{"image.pullPolicy", "image: {pullPolicy: Always}", external, single + container + "imagePullPolicy", "Always"},
	{"image.pullSecrets", "image: {pullSecrets: [registry]}", external, single + pod + "imagePullSecrets/0/name", "registry"},

	{"installation", "installation: shop", external, single + env("INSTALLATION"), "shop"},
	{"installation", "installation: shop", functions + "database: {roles: functions}", "Job jobweaver-migrate-* " + env("INSTALLATION"), "shop"},
	{"installation", "installation: shop", functions + "autoscaling: {keda: {enabled: true}}\n", "ScaledObject jobweaver-ingest spec/triggers/0/metadata/topic", "shop.job-created"},
	{"installation", "installation: shop", scaled, "ScaledObject jobweaver-worker spec/triggers/0/metadata/consumerGroup", "shop.jobweaver-runjob-default"},
	{"database.schemas", "database: {schemas: true}", external, single + env("DATABASE_SCHEMAS"), "true"},
	{"database.schemas", "database: {schemas: true}", groups + "database: {roles: services}", "Job jobweaver-migrate-* " + env("DATABASE_SCHEMAS"), "true"},
	{"database.existingSecret", external, "database: {url: 'postgres://a/b'}\n", single + pod + "volumes/[database]/secret/secretName", "db"},
	{"database.url", "database: {existingSecret: '', url: 'postgres://u:p@h/d'}", external, "Secret jobweaver-database data/url", "cG9zdGdyZXM6Ly91OnBAaC9k"},
	{"database.roles", "database: {roles: services}", groups, "Deployment jobweaver-api " + env("API_DATABASE_URL_FILE"), "/etc/jobweaver/database/api"},
	{"database.roles", "database: {roles: functions}", functions, "Deployment jobweaver-cron " + env("API_DATABASE_URL_FILE"), "/etc/jobweaver/database/cron"},
	{"database.passwordsSecret", "database: {passwordsSecret: words}", functions + "database: {roles: functions}", "Job jobweaver-migrate-* " + pod + "volumes/[passwords]/secret/secretName", "words"},
	{"database.caSecret", "database: {caSecret: ca}", external, single + pod + "volumes/[database-ca]/secret/secretName", "ca"},
	{"database.bundled.enabled", "database: {bundled: {enabled: true}}", external, "StatefulSet jobweaver-postgres", "there"},
	{"database.bundled.image", "database: {bundled: {image: 'p:19'}}", bundled, "StatefulSet jobweaver-postgres " + container + "image", "p:19"},
	{"database.bundled.storage", "database: {bundled: {storage: 3Gi}}", bundled, "StatefulSet jobweaver-postgres " + claim + "resources/requests/storage", "3Gi"},
	{"database.bundled.storageClass", "database: {bundled: {storageClass: fast}}", bundled, "StatefulSet jobweaver-postgres " + claim + "storageClassName", "fast"},

	{"kafka.brokers", "kafka: {brokers: ['c:1']}", serve, "Deployment jobweaver-serve " + env("KAFKA_BROKERS"), "c:1"},
	{"kafka.tls.enabled", "kafka: {tls: {enabled: true}}", serve, "Deployment jobweaver-serve " + env("KAFKA_TLS_ENABLED"), "true"},
	{"kafka.tls.caSecret", "kafka: {tls: {caSecret: ca}}", serve, "Deployment jobweaver-serve " + pod + "volumes/[kafka-ca]/secret/secretName", "ca"},
	{"kafka.tls.clientSecret", "kafka: {tls: {clientSecret: own}}", serve, "Deployment jobweaver-serve " + pod + "volumes/[kafka-client]/secret/secretName", "own"},
	{"kafka.sasl.mechanism", "kafka: {sasl: {mechanism: SCRAM-SHA-256}}", login, "Deployment jobweaver-serve " + env("KAFKA_SASL_MECHANISM"), "SCRAM-SHA-256"},
	{"kafka.sasl.username", "kafka: {sasl: {username: me}}", login, "Deployment jobweaver-serve " + env("KAFKA_SASL_USERNAME"), "me"},
	{"kafka.sasl.existingSecret", "kafka: {sasl: {existingSecret: other}}", login, "Deployment jobweaver-serve " + pod + "volumes/[kafka]/secret/secretName", "other"},
	{"kafka.bundled.enabled", "kafka: {bundled: {enabled: true}}", serve, "Deployment jobweaver-serve " + env("KAFKA_BROKERS"), "jobweaver-kafka:9092"},
	{"kafka.bundled.image", "kafka: {bundled: {image: 'k:5'}}", bundled, "StatefulSet jobweaver-kafka " + container + "image", "k:5"},
	{"kafka.bundled.storage", "kafka: {bundled: {storage: 3Gi}}", bundled, "StatefulSet jobweaver-kafka " + claim + "resources/requests/storage", "3Gi"},
	{"kafka.bundled.storageClass", "kafka: {bundled: {storageClass: fast}}", bundled, "StatefulSet jobweaver-kafka " + claim + "storageClassName", "fast"},

	{"apiKey.existingSecret", "apiKey: {existingSecret: key}", external, single + env("BOOTSTRAP_API_KEY_FILE"), "/etc/jobweaver/api-key/bootstrap-api-key"},
	{"signing.existingSecret", "signing: {existingSecret: sign}", external, single + env("WEBHOOK_SECRETS_FILE"), "/etc/jobweaver/signing/webhook-secrets"},
	{"keyset.existingSecret", "keyset: {existingSecret: keys}", external, single + env("ENCRYPTION_KEYSET_FILE"), "/etc/jobweaver/keyset/keyset.json"},
	{"relay.existingSecret", "relay: {existingSecret: boxes}", external, single + env("RELAY_DATABASES_FILE"), "/etc/jobweaver/relay/databases"},
	{"relay.existingSecret", "relay: {existingSecret: boxes}", groups, "Deployment jobweaver-relay " + env("GATEWAY_URL"), "http://jobweaver:80"},

	{"publicUrl", "publicUrl: https://jobs.example.org/", external, single + env("CALLBACK_URL"), "https://jobs.example.org/api/jobs/callback"},
	{"queues", "queues: [default, gpu, pull]", external, single + env("QUEUES"), "default,gpu,pull"},
	{"pullQueues", "pullQueues: [default]", external, single + env("PULL_QUEUES"), "default"},
	{"pullQueues", "pullQueues: []", groups, "Deployment jobweaver-pull", "gone"},
	{"settings", "settings: {LOG_LEVEL: debug}", external, single + env("LOG_LEVEL"), "debug"},
	{"settings", "settings: {MAX_BODY: 2000000}", external, single + env("MAX_BODY"), "2000000"},
	{"secretSettings", "secretSettings: {SMTP_PASSWORD: {secret: mail, key: word}}", external, single + pod + "volumes/[settings]/projected/sources/0/secret/items/0/key", "word"},

	{"defaults.replicas", "defaults: {replicas: 4}", groups, "Deployment jobweaver-scheduler spec/replicas", "4"},
	{"defaults.minReplicas", "defaults: {minReplicas: 2}", scaled, "ScaledObject jobweaver-worker spec/minReplicaCount", "2"},
	{"defaults.maxReplicas", "defaults: {maxReplicas: 9}", functions + "autoscaling: {keda: {enabled: true}}\n", "ScaledObject jobweaver-ingest spec/maxReplicaCount", "9"},
	{"defaults.resources", "defaults: {resources: {limits: {memory: 1Gi}}}", groups, "Deployment jobweaver-api " + env("GOMEMLIMIT"), "716MiB"},
	{"defaults.terminationGracePeriodSeconds", "defaults: {terminationGracePeriodSeconds: 90}", external, single + pod + "terminationGracePeriodSeconds", "90"},
	{"defaults.settings", "defaults: {settings: {LOG_LEVEL: warn}}", external, single + env("LOG_LEVEL"), "warn"},
	{"defaults.secretSettings", "defaults: {secretSettings: {SMTP_PASSWORD: {secret: mail, key: word}}}", external, single + env("SMTP_PASSWORD_FILE"), "/etc/jobweaver/settings/SMTP_PASSWORD"},
	{"defaults.podLabels", "defaults: {podLabels: {team: jobs}}", external, single + "spec/template/metadata/labels/team", "jobs"},
	{"defaults.podAnnotations", "defaults: {podAnnotations: {a/b: c}}", external, single + "spec/template/metadata/annotations", "a/b: c"},
	{"defaults.nodeSelector", "defaults: {nodeSelector: {disk: ssd}}", external, single + pod + "nodeSelector/disk", "ssd"},
	{"defaults.tolerations", "defaults: {tolerations: [{key: batch, operator: Exists}]}", external, single + pod + "tolerations/0/key", "batch"},
	{"defaults.affinity", "defaults: {affinity: {podAffinity: {}}}", external, single + pod + "affinity/podAffinity", "{}"},
	{"defaults.priorityClassName", "defaults: {priorityClassName: high}", external, single + pod + "priorityClassName", "high"},
	{"defaults.volumes", "defaults: {volumes: [{name: mine, emptyDir: {}}]}", external, single + pod + "volumes/[mine]/emptyDir", "{}"},
	{"defaults.volumeMounts", "defaults: {volumes: [{name: mine, emptyDir: {}}], volumeMounts: [{name: mine, mountPath: /mine}]}", external, single + container + "volumeMounts/[mine]/mountPath", "/mine"},
	{"components", "components: {worker: {settings: {POOL_SIZE: 40}}}", groups, "Deployment jobweaver-worker " + env("POOL_SIZE"), "40"},

	{"autoscaling.cpu.enabled", "autoscaling: {cpu: {enabled: true}}", groups, "HorizontalPodAutoscaler jobweaver-api", "there"},
	{"autoscaling.cpu.enabled", "autoscaling: {cpu: {enabled: true}}", serve, "Deployment jobweaver-serve spec/replicas", "gone"},
	{"autoscaling.cpu.average", "autoscaling: {cpu: {average: 900m}}", scaled, "HorizontalPodAutoscaler jobweaver-api spec/metrics/0/resource/target/averageValue", "900m"},
	{"autoscaling.keda.enabled", "autoscaling: {keda: {enabled: true}}", groups, "ScaledObject jobweaver-worker spec/triggers/0/metadata/lagThreshold", "9"},
	{"autoscaling.keda.pollingInterval", "autoscaling: {keda: {pollingInterval: 30}}", scaled, "ScaledObject jobweaver-worker spec/pollingInterval", "30"},
	{"autoscaling.keda.authentication", "autoscaling: {keda: {authentication: kafka}}", scaled, "ScaledObject jobweaver-worker spec/triggers/0/authenticationRef/name", "kafka"},

	{"podDisruptionBudget.enabled", "podDisruptionBudget: {enabled: false}", groups, "PodDisruptionBudget jobweaver-api", "gone"},

	{"service.type", "service: {type: LoadBalancer}", external, "Service jobweaver spec/type", "LoadBalancer"},
	{"service.port", "service: {port: 8443}", external, "Service jobweaver spec/ports/0/port", "8443"},
	{"service.annotations", "service: {annotations: {a/b: c}}", external, "Service jobweaver metadata/annotations", "a/b: c"},
	{"ingress.enabled", "ingress: {enabled: true}", "ingress: {host: h.example.org}\n" + external, "Ingress jobweaver", "there"},
	{"ingress.className", "ingress: {className: nginx}", ingress, "Ingress jobweaver spec/ingressClassName", "nginx"},
	{"ingress.annotations", "ingress: {annotations: {a/b: c}}", ingress, "Ingress jobweaver metadata/annotations", "a/b: c"},
	{"ingress.host", "ingress: {host: other.example.org}", ingress, "Ingress jobweaver spec/rules/0/host", "other.example.org"},
	{"ingress.tlsSecret", "ingress: {tlsSecret: cert}", ingress, "Ingress jobweaver spec/tls/0/secretName", "cert"},

	{"serviceAccount.create", "serviceAccount: {create: false}", external, "ServiceAccount jobweaver", "gone"},
	{"serviceAccount.name", "serviceAccount: {name: me}", external, single + pod + "serviceAccountName", "me"},
	{"serviceAccount.annotations", "serviceAccount: {annotations: {a/b: c}}", external, "ServiceAccount jobweaver metadata/annotations", "a/b: c"},

	{"networkPolicy.enabled", "networkPolicy: {enabled: true}", external, "NetworkPolicy jobweaver", "there"},
	{"networkPolicy.clients", "networkPolicy: {clients: [{podSelector: {}}]}", closed, "NetworkPolicy jobweaver-clients spec/ingress/0/from/0/podSelector", "{}"},
	{"networkPolicy.prometheus.namespace", "networkPolicy: {prometheus: {namespace: prom}}", closed, "NetworkPolicy jobweaver-metrics spec/ingress/0/from/0/namespaceSelector/matchLabels", "kubernetes.io/metadata.name: prom"},
	{"networkPolicy.ports", "networkPolicy: {ports: [6432]}", closed, "NetworkPolicy jobweaver spec/egress/2/ports/0/port", "6432"},

	{"monitoring.podMonitor.enabled", "monitoring: {podMonitor: {enabled: true}}", external, "PodMonitor jobweaver", "there"},
	{"monitoring.podMonitor.interval", "monitoring: {podMonitor: {interval: 60s}}", watched, "PodMonitor jobweaver spec/podMetricsEndpoints/0/interval", "60s"},
	{"monitoring.podMonitor.labels", "monitoring: {podMonitor: {labels: {release: prom}}}", watched, "PodMonitor jobweaver metadata/labels/release", "prom"},
	{"monitoring.rules.enabled", "monitoring: {rules: {enabled: true}}", external, "PrometheusRule jobweaver", "there"},
	{"monitoring.rules.labels", "monitoring: {rules: {labels: {release: prom}}}", watched, "PrometheusRule jobweaver metadata/labels/release", "prom"},
}

const (
	sum   = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	claim = "spec/volumeClaimTemplates/0/spec/"

	bundled = "mode: serve\ndatabase: {bundled: {enabled: true}}\nkafka: {bundled: {enabled: true}}\n"
	login   = "mode: serve\ndatabase: {existingSecret: db}\n" +
		"kafka: {brokers: ['a:9092'], sasl: {mechanism: PLAIN, username: u, existingSecret: s}}\n"
	scaled  = groups + "autoscaling: {keda: {enabled: true}, cpu: {enabled: true}}\n"
	ingress = external + "ingress: {enabled: true, host: h.example.org}\n"
	closed  = external + "networkPolicy: {enabled: true}\n"
	watched = external + "monitoring: {podMonitor: {enabled: true}, rules: {enabled: true}}\n"
)
