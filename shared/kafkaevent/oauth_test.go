package kafkaevent

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// bearerBroker answers each connection with OAUTHBEARER. Its history has the tokens.
func bearerBroker(t *testing.T) *sarama.MockBroker {
	t.Helper()
	broker := sarama.NewMockBroker(t, 0)
	broker.SetHandlerByMap(map[string]sarama.MockResponse{
		"ApiVersionsRequest": sarama.NewMockApiVersionsResponse(t).SetApiKeys([]sarama.ApiVersionsResponseKey{
			{ApiKey: 3, MaxVersion: 7}, {ApiKey: 17, MaxVersion: 1}, {ApiKey: 36, MaxVersion: 1}, // Metadata and the two of SASL
		}),
		"SaslHandshakeRequest":    sarama.NewMockSaslHandshakeResponse(t).SetEnabledMechanisms([]string{sarama.SASLTypeOAuth}),
		"SaslAuthenticateRequest": sarama.NewMockSaslAuthenticateResponse(t),
		"MetadataRequest": sarama.NewMockMetadataResponse(t).SetBroker(broker.Addr(), broker.BrokerID()).
			SetController(broker.BrokerID()),
	})
	t.Cleanup(broker.Close)
	return broker
}

// connected returns what the next client sends as its token.
func connected(t *testing.T, s *sarama.Config, broker *sarama.MockBroker) (string, error) {
	t.Helper()
	before := len(broker.History())
	s.Metadata.Full = true // so that it connects at once
	client, err := sarama.NewClient([]string{broker.Addr()}, s)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	for _, exchange := range broker.History()[before:] {
		if request, is := exchange.Request.(*sarama.SaslAuthenticateRequest); is {
			return strings.ReplaceAll(string(request.SaslAuthBytes), "\x01", "|"), nil
		}
	}
	return "", errors.New("the client has not authenticated itself")
}

func TestEachConnectionHasTheTokenOfItsMoment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for name, cfg := range map[string]Config{
		"a file":    {SASLTokenFile: file},
		"a command": {SASLTokenCommand: "cat " + file},
	} {
		broker := bearerBroker(t)
		cfg.Brokers, cfg.SASLMechanism = []string{broker.Addr()}, "OAUTHBEARER"
		cfg.SASLExtensions = []string{"logicalCluster=lkc-1", "identityPoolId=pool=2"}
		s, err := cfg.Sarama()
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"first", "second"} {
			if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := connected(t, s, broker)
			if want := "n,,|auth=Bearer " + token + "|identityPoolId=pool=2|logicalCluster=lkc-1||"; err != nil || got != want {
				t.Errorf("%s: sent %q, %v", name, got, err)
			}
		}
	}
}

func TestATokenThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	broker := bearerBroker(t)
	for want, cfg := range map[string]Config{
		"KAFKA_SASL_TOKEN_FILE: open /not/there":                                     {SASLTokenFile: "/not/there"},
		"KAFKA_SASL_TOKEN_COMMAND: the command failed: exit status 1: not logged in": {SASLTokenCommand: "echo not logged in >&2; exit 1"},
	} {
		cfg.Brokers, cfg.SASLMechanism = []string{broker.Addr()}, "OAUTHBEARER"
		producer, err := NewProducer(cfg)
		if err == nil {
			t.Cleanup(producer.Close)
			p := placeOn(t, cfg.Brokers)
			err = producer.Publish(testwait.Within(t, time.Minute), p.events(0, 1, 1))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not have %s", err, want)
		}
	}
}

// The endpoint is asked once for as long as its token is valid.
func TestAnEndpointGivesTokensForTheClientsSecret(t *testing.T) {
	t.Parallel()
	var given, lasts atomic.Int32
	lasts.Store(3600)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, password, _ := r.BasicAuth()
		if id != "jobweaver" || password != "geheim" || r.FormValue("scope") != "kafka events" ||
			r.FormValue("grant_type") != "client_credentials" {
			http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token%d","token_type":"bearer","expires_in":%d}`, given.Add(1), lasts.Load())
	}))
	t.Cleanup(endpoint.Close)
	broker := bearerBroker(t)
	cfg := Config{
		Brokers: []string{broker.Addr()}, SASLMechanism: "OAUTHBEARER", SASLTokenURL: endpoint.URL,
		SASLUsername: "jobweaver", SASLPassword: secret.Of("geheim"), SASLScopes: []string{"kafka", "events"},
	}
	s, err := cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := connected(t, s, broker); err != nil || got != "n,,|auth=Bearer token1||" {
			t.Errorf("sent %q, %v", got, err)
		}
	}
	lasts.Store(1) // it has expired when it arrives
	if s, err = cfg.Sarama(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"token2", "token3"} {
		if got, err := connected(t, s, broker); err != nil || got != "n,,|auth=Bearer "+want+"||" {
			t.Errorf("sent %q, %v", got, err)
		}
	}
	cfg.SASLPassword = secret.Of("wrong word")
	if s, err = cfg.Sarama(); err != nil {
		t.Fatal(err)
	}
	s.Metadata.Retry.Max = 0
	if _, err := connected(t, s, broker); err == nil || !strings.Contains(err.Error(), "KAFKA_SASL_TOKEN_URL") ||
		strings.Contains(err.Error(), "wrong word") {
		t.Errorf("a wrong secret: %v", err)
	}
}

func TestAPasswordFileOfSCRAMIsReadAtEachConnection(t *testing.T) {
	t.Parallel()
	s := newSecure(t, "SCRAM-SHA-512")
	s.cfg.SASLPassword, s.cfg.SASLPasswordFile = secret.Text{}, filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(s.cfg.SASLPasswordFile, []byte("an old one"), 0o600); err != nil {
		t.Fatal(err)
	}
	producer := s.producer()
	if err := producer.Publish(testwait.Within(t, time.Minute), s.events(0, 1, 1)); err == nil {
		t.Error("a wrong password was accepted")
	}
	if err := os.WriteFile(s.cfg.SASLPasswordFile, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	publish(t, producer, s.events(0, 1, 1))
}
