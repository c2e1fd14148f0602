package envsettings

import (
	"slices"
	"testing"
)

func TestNamesLikeSettingsAreFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"AUHT":                        "AUTH",
		"QUEUE":                       "QUEUES",
		"PORTS":                       "PORT",
		"DATABASE_URI":                "DATABASE_URL",
		"DATABSE_URL_FILE":            "DATABASE_URL_FILE",
		"DATABASE_URL_FIEL":           "DATABASE_URL_FILE",
		"KAFKA_BROKER":                "KAFKA_BROKERS",
		"SHUTDOWN_GRAEC":              "SHUTDOWN_GRACE",
		"OUTBUOND_ALOW":               "OUTBOUND_ALLOW",
		"OTEL_EXPORTER_OTLP_ENDPONIT": "OTEL_EXPORTER_OTLP_ENDPOINT",

		"AUTH": "", "DATABASE_URL_FILE": "", "K_CA_CERTS_FILE": "", "": "", "A": "",
		"HOME": "", "PATH": "", "HOSTNAME": "", "PWD": "", "SHELL": "", "TERM": "", "USER": "", "LANG": "", "SHLVL": "",
		"SSL_CERT_FILE": "", "SSL_CERT_DIR": "", "OAUTH": "", "TRACE": "", "PLEASE": "", "RELEASE": "", "PGPORT": "", "PGHOST": "",
		"GOGC": "", "GOMEMLIMIT": "", "AWS_REGION": "", "HTTP_PROXY": "", "NO_PROXY": "", "K_SERVICE": "", "K_REVISION": "",
		"K_CONFIGURATION": "", "KUBERNETES_PORT": "", "GATEWAY_PORT": "", "POD_NAME": "", "NODE_NAME": "",
		"OTEL_METRICS_EXPORTER": "", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "", "OTEL_RESOURCE_ATTRIBUTES": "",
		"JOBWEAVER_URL": "", "ROLES_PASSWORD": "", "TRACE_URL": "", "POSTGRES_PASSWORD": "", "BROKER_DIR": "",
	} {
		if got := likelySetting(name); got != want {
			t.Errorf("%q was taken for %q, want %q", name, got, want)
		}
	}
}

func TestNearMissesAreNamedWithoutTheirValues(t *testing.T) {
	t.Parallel()
	got := NearMisses([]string{"PATH=/bin", "SMTP_PASWORD=secret", "AUHT=off", "AUTH=on"})
	want := []string{"AUHT (did you mean AUTH?)", "SMTP_PASWORD (did you mean SMTP_PASSWORD?)"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
