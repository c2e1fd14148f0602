package kafkaevent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

const (
	user     = "jobweaver"
	password = "pass word"
)

// secure is a place on a broker with TLS and SASL that requires a client certificate. One CA has signed the
// certificates of both sides.
type secure struct {
	*place
	ca    *certtest.CA
	files certtest.Dir // ours
}

// newSecure uses an embedded broker for each test, or one Apache Kafka for all tests that run at once.
func newSecure(t *testing.T, mechanism string) *secure {
	t.Helper()
	s := &secure{}
	if kafkatest.Shared() {
		ca, brokers := apache.take(t)
		s.ca, s.place = ca, placeOn(t, brokers)
	} else {
		s.ca = certtest.New(t)
		s.place = placeOn(t, embedded(t, s.ca, mechanism))
	}
	s.files = certtest.NewDir(t, s.ca, s.ca.Issue(t, "client"))
	s.cfg.TLSEnabled, s.cfg.TLSCAFile = true, s.files.CA()
	s.cfg.TLSCertFile, s.cfg.TLSKeyFile = s.files.Cert(), s.files.Key()
	s.cfg.SASLMechanism, s.cfg.SASLUsername, s.cfg.SASLPassword = mechanism, user, secret.Of(password)
	return s
}

func embedded(t *testing.T, ca *certtest.CA, mechanism string) []string {
	t.Helper()
	pair := ca.Issue(t, "127.0.0.1")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, user, password),
		kfake.TLS(&tls.Config{
			Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()
}

// apache ends with the last test that uses it.
var apache shared

type shared struct {
	mu     sync.Mutex
	users  int
	ca     *certtest.CA
	dir    string
	server *localkafka.Server
}

func (s *shared) take(t *testing.T) (*certtest.CA, []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		s.start(t)
	}
	s.users++
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users > 0 {
			return
		}
		if err := errors.Join(s.server.Stop(), os.RemoveAll(s.dir)); err != nil {
			t.Error(err)
		}
		s.server = nil
	})
	return s.ca, s.server.SecureBrokers()
}

func (s *shared) start(t *testing.T) {
	t.Helper()
	s.ca = certtest.New(t)
	pair := s.ca.Issue(t, "127.0.0.1")
	var err error
	if s.dir, err = os.MkdirTemp("", "jobweaver-kafkatest-"); err != nil { // it outlives the test that needs it first
		t.Fatal(err)
	}
	clients, keystore := filepath.Join(s.dir, "ca.pem"), filepath.Join(s.dir, "keystore.pem")
	for path, text := range map[string][]byte{clients: s.ca.PEM, keystore: append(pair.Key, pair.Cert...)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.server, err = localkafka.StartApache(t.Context(), localkafka.Config{
		Dir:    filepath.Join(s.dir, "kafka"),
		Secure: &localkafka.Secure{Keystore: keystore, ClientCA: clients, User: user, Password: password},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEventsTravelOverTLSWithEachMechanism(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			s := newSecure(t, mechanism)
			s.createTopic()
			tailed := newSeen()
			s.tail(tailed)
			publish(t, s.producer(), s.events(0, 10, 3))
			got := newSeen()
			s.member(500, got.handle)
			got.wait(testwait.Within(t, time.Minute), t, 10)
			tailed.wait(testwait.Within(t, time.Minute), t, 10)
		})
	}
}

// tail runs a tailer, and waits until it has its position.
func (s *secure) tail(got *seen) {
	s.t.Helper()
	tailer, err := NewTailer(s.cfg, s.topic)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = tailer.Run(ctx, func(m *sarama.ConsumerMessage) { _ = got.handle(ctx, []*sarama.ConsumerMessage{m}) })
	})
	s.t.Cleanup(func() { stop(); running.Wait() })
	select {
	case <-tailer.Started():
	case <-testwait.Within(s.t, time.Minute).Done():
		s.t.Fatal("the tailer has no place")
	}
}

func TestTheErrorNamesWhatIsWrongOnTheWayToABroker(t *testing.T) {
	t.Parallel()
	other := certtest.New(t)
	var trying sync.WaitGroup // concurrently, because the tries mostly wait
	for _, tt := range []struct {
		name   string
		change func(s *secure)
		want   string
	}{
		{"a wrong password", func(s *secure) { s.cfg.SASLPassword = secret.Of("wrong word") }, "SASL"},
		{"an unknown name", func(s *secure) { s.cfg.SASLUsername = "stranger" }, "SASL"},
		{"another CA", func(s *secure) { s.files.Put(s.t, other, certtest.Pair{}) }, "unknown authority"},
		{"another name", func(s *secure) {
			s.cfg.Brokers = []string{strings.Replace(s.cfg.Brokers[0], "127.0.0.1", "localhost", 1)}
		}, "localhost"},
		{"a certificate of another CA", func(s *secure) { s.files.Put(s.t, nil, other.Issue(s.t, "client")) }, "certificate"},
		{"no certificate", func(s *secure) { s.cfg.TLSCertFile, s.cfg.TLSKeyFile = "", "" }, "certificate"},
	} {
		s := newSecure(t, "SCRAM-SHA-512")
		tt.change(s)
		consumer, err := NewGroupConsumer(s.cfg, s.group, []string{s.topic})
		if err != nil {
			t.Fatal(err)
		}
		tailer, err := NewTailer(s.cfg, s.topic)
		if err != nil {
			t.Fatal(err)
		}
		producer := s.producer()
		for who, try := range map[string]func(context.Context) error{
			"a producer": func(ctx context.Context) error { return producer.Publish(ctx, s.events(0, 1, 1)) },
			"topics":     func(ctx context.Context) error { return CreateTopics(ctx, s.cfg, ourTopics([]string{s.topic})) },
			"a consumer": func(ctx context.Context) error { return consumer.connect(ctx, Hooks{}) },
			"a tailer":   func(ctx context.Context) error { return tailer.connect(ctx, func(*sarama.ConsumerMessage) {}) },
		} {
			trying.Go(func() {
				err := try(testwait.Within(t, time.Minute))
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), s.cfg.SASLPassword.Reveal()) {
					t.Errorf("%s, %s: %v", tt.name, who, err)
				}
			})
		}
	}
	trying.Wait()
}

func TestRenewedFilesAreUsedByTheNextConnectionToABroker(t *testing.T) {
	t.Parallel()
	s, other := newSecure(t, "SCRAM-SHA-512"), certtest.New(t)
	s.files.Put(t, other, other.Issue(t, "client")) // the files from before a renewal
	producer, got := s.producer(), newSeen()
	if err := producer.Publish(testwait.Within(t, time.Minute), s.events(0, 1, 1)); err == nil {
		t.Fatal("published with the files of the day before")
	}
	s.member(500, got.handle) // it goes on trying
	s.files.Put(t, s.ca, s.ca.Issue(t, "client"))
	until(testwait.Within(t, time.Minute), t, "the new files are used", func() bool {
		return producer.Publish(testwait.Within(t, time.Minute), s.events(0, 1, 1)) == nil
	})
	got.wait(testwait.Within(t, time.Minute), t, 1)
}
