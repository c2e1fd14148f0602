package kafkaevent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelseyhightower/envconfig"

	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestConfigIsReadFromTheEnvironment(t *testing.T) {
	t.Setenv("KAFKA_BROKERS", "a:1, b:2")
	t.Setenv("KAFKA_SASL_MECHANISM", "plain")
	t.Setenv("KAFKA_SASL_USERNAME", "me")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KAFKA_SASL_PASSWORD_FILE", file)
	var cfg Config
	if err := envconfig.Process("", &cfg); err != nil {
		t.Fatal(err)
	}
	s, err := cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cfg.addrs(), "|"); got != "a:1|b:2" {
		t.Errorf("brokers %s", got)
	}
	if s.Net.SASL.Password != "secret" || s.Net.SASL.Mechanism != "PLAIN" || s.ClientID != "jobweaver" {
		t.Errorf("SASL %+v, client %s", s.Net.SASL, s.ClientID)
	}
}

func TestABadSettingIsNamed(t *testing.T) {
	t.Parallel()
	b := []string{"localhost:9092"}
	for name, cfg := range map[string]Config{
		"KAFKA_BROKERS":                       {Brokers: []string{" "}},
		"KAFKA_SASL_MECHANISM":                {Brokers: b, SASLMechanism: "GSSAPI"},
		"KAFKA_SASL_MECHANISM: is not set":    {Brokers: b, SASLPassword: secret.Of("p")},
		"KAFKA_SASL_USERNAME":                 {Brokers: b, SASLMechanism: "PLAIN", SASLPassword: secret.Of("p")},
		"KAFKA_SASL_PASSWORD: is not set":     {Brokers: b, SASLMechanism: "PLAIN", SASLUsername: "u"},
		"KAFKA_SASL_PASSWORD: is set, and so": {Brokers: b, SASLMechanism: "PLAIN", SASLUsername: "u", SASLPassword: secret.Of("p"), SASLPasswordFile: "f"},
		"KAFKA_TLS_CA_FILE: is set, and":      {Brokers: b, TLSCAFile: "f"},
		"KAFKA_TLS_KEY_FILE: is not set":      {Brokers: b, TLSEnabled: true, TLSCertFile: "f"},
		"KAFKA_SASL_MECHANISM: OAUTHBEARER":   {Brokers: b, SASLMechanism: "OAUTHBEARER", SASLTokenFile: "f", SASLTokenCommand: "c"},
		"KAFKA_SASL_MECHANISM: is not set, ":  {Brokers: b, SASLTokenURL: "https://h"},
		"KAFKA_SASL_TOKEN_URL: must be":       {Brokers: b, SASLMechanism: "oauthbearer", SASLTokenURL: "http://h.example"},
		"KAFKA_SASL_EXTENSIONS":               {Brokers: b, SASLMechanism: "OAUTHBEARER", SASLTokenFile: "f", SASLExtensions: []string{"a"}},
		"KAFKA_SASL_PASSWORD_FILE":            {Brokers: b, SASLMechanism: "PLAIN", SASLUsername: "u", SASLPasswordFile: "/none"},
		"KAFKA_TLS_CA_FILE":                   {Brokers: b, TLSEnabled: true, TLSCAFile: "/none"},
		"KAFKA_TLS_CERT_FILE":                 {Brokers: b, TLSEnabled: true, TLSCertFile: "/none", TLSKeyFile: "/none"},
	} {
		if _, err := NewProducer(cfg); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
