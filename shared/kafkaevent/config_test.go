package kafkaevent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/twmb/franz-go/pkg/kfake"
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
		"KAFKA_BROKERS":            {Brokers: []string{" "}},
		"KAFKA_SASL_MECHANISM":     {Brokers: b, SASLMechanism: "GSSAPI"},
		"KAFKA_SASL_PASSWORD_FILE": {Brokers: b, SASLMechanism: "PLAIN", SASLUsername: "u", SASLPasswordFile: "/none"},
		"KAFKA_TLS_CA_FILE":        {Brokers: b, TLSEnabled: true, TLSCAFile: "/none"},
		"KAFKA_TLS_CERT_FILE":      {Brokers: b, TLSEnabled: true, TLSCertFile: "/none"},
	} {
		if _, err := NewProducer(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEventsTravelOverTLSWithEachMechanism(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			cert, ca := certificate(t)
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
				kfake.Superuser(mechanism, "jobweaver", "pass word"),
				kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Close)
			p := placeOn(t, cluster.ListenAddrs())
			p.cfg.TLSEnabled, p.cfg.TLSCAFile = true, ca
			p.cfg.SASLMechanism, p.cfg.SASLUsername, p.cfg.SASLPassword = mechanism, "jobweaver", "pass word"
			publish(t, p.producer(), p.events(0, 10, 3))
			got := newSeen()
			p.member(500, got.handle)
			got.wait(within(t, time.Minute), t, 10)
		})
	}
}

// certificate is one for 127.0.0.1 that signs itself, and the file to trust it by.
func certificate(t *testing.T) (cert tls.Certificate, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca
}
