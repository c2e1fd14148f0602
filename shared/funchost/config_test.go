package funchost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/secret"
)

type settings struct {
	Secret string        `envconfig:"FUNCHOST_TEST_SECRET"`
	Size   int           `envconfig:"FUNCHOST_TEST_SIZE" default:"12"`
	Lease  time.Duration `envconfig:"FUNCHOST_TEST_LEASE" default:"15s"`
}

func TestSettingsComeFromTheEnvironmentAndFromFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("top secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FUNCHOST_TEST_SECRET_FILE", file)
	t.Setenv("FUNCHOST_TEST_SIZE", "3")
	var got settings
	if err := (&Env{}).Load(&got); err != nil {
		t.Fatal(err)
	}
	if want := (settings{Secret: "top secret", Size: 3, Lease: 15 * time.Second}); got != want {
		t.Errorf("loaded %+v", got)
	}
}

type parted struct {
	Size int `envconfig:"FUNCHOST_TEST_SIZE"`

	More struct {
		Secret string `envconfig:"FUNCHOST_TEST_SECRET"`
	} `ignored:"true"`
}

func (c *parted) Parts() []any { return []any{c, &c.More} }

// A worker that loads its Config without the parts would have no keys to open payloads.
func TestLoadReadsAllPartsOfAStruct(t *testing.T) {
	t.Setenv("FUNCHOST_TEST_SIZE", "3")
	t.Setenv("FUNCHOST_TEST_SECRET", "top secret")
	var got parted
	if err := (&Env{}).Load(&got); err != nil || got.Size != 3 || got.More.Secret != "top secret" {
		t.Errorf("loaded %+v, %v", got, err)
	}
}

func TestAProgramAdjustsEachPartOfTheSettingsThatAFunctionLoads(t *testing.T) {
	t.Setenv("FUNCHOST_TEST_SIZE", "3")
	refused := errors.New("refused")
	env := NewEnv(Config{}, "postgres://db", func(part any) error {
		switch part := part.(type) {
		case *parted:
			part.Size++
		case *struct {
			Secret string `envconfig:"FUNCHOST_TEST_SECRET"`
		}:
			part.Secret = "set"
			return refused
		}
		return nil
	})
	closed := false
	env.OnClose(func() { closed = true })
	var got parted
	if err := env.Load(&got); !errors.Is(err, refused) || got.Size != 4 || got.More.Secret != "set" {
		t.Errorf("loaded %+v, %v", got, err)
	}
	if env.Close(); !closed || env.DatabaseURL() != "postgres://db" {
		t.Errorf("closed %t, database %q", closed, env.DatabaseURL())
	}
}

func TestTextsOfAFileStandOnALineEach(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("a\r\nb,c\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FUNCHOST_TEST_SECRETS_FILE", file)
	type texts []string
	var got struct {
		Secrets texts `envconfig:"FUNCHOST_TEST_SECRETS" default:"x,y"`
	}
	if err := envsettings.Load(&got); err != nil || !slices.Equal(got.Secrets, []string{"a", "b", "c"}) {
		t.Errorf("loaded %q, %v", got.Secrets, err)
	}
}

func TestSecretsComeFromTheEnvironmentAndFromFilesAndAreNotPrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("geheim1\ngeheim2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FUNCHOST_TEST_ALL_FILE", file)
	t.Setenv("FUNCHOST_TEST_ONE_FILE", file)
	t.Setenv("FUNCHOST_TEST_OTHER", "geheim3")
	t.Setenv("FUNCHOST_TEST_OTHERS", "geheim4,geheim5")
	var got struct {
		One    secret.Text  `envconfig:"FUNCHOST_TEST_ONE"`
		Other  secret.Text  `envconfig:"FUNCHOST_TEST_OTHER"`
		None   secret.Text  `envconfig:"FUNCHOST_TEST_NONE"`
		All    secret.Texts `envconfig:"FUNCHOST_TEST_ALL"`
		Others secret.Texts `envconfig:"FUNCHOST_TEST_OTHERS"`
	}
	if err := envsettings.Load(&got); err != nil {
		t.Fatal(err)
	}
	if got.One.Reveal() != "geheim1\ngeheim2" || got.Other.Reveal() != "geheim3" || got.None.IsSet() ||
		!slices.Equal(got.All.Reveal(), []string{"geheim1", "geheim2"}) ||
		!slices.Equal(got.Others.Reveal(), []string{"geheim4", "geheim5"}) {
		t.Errorf("loaded %q %q %q", got.One.Reveal(), got.All.Reveal(), got.Others.Reveal())
	}
	t.Setenv("DATABASE_URL", "postgres://u:geheim6@h/d")
	t.Setenv("KAFKA_SASL_PASSWORD", "geheim7")
	env, err := loadEnv(Needs{Database: true})
	if err != nil || env.DatabaseURL() != "postgres://u:geheim6@h/d" {
		t.Fatalf("loaded %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %v %+v", got, got, got, env, env.Config); strings.Contains(text, "geheim") {
		t.Error(text)
	}
}

func TestNoFunctionStartsWithoutAQueue(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://u@h/d")
	t.Setenv("QUEUES", "")
	if _, err := loadEnv(Needs{Database: true}); err == nil || err.Error() != "QUEUES: names no queue" {
		t.Errorf("loaded with %v", err)
	}
}

func TestABadSettingIsNamedFirst(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"FUNCHOST_TEST_SIZE", "many", `FUNCHOST_TEST_SIZE: "many" must be a whole number`},
		{"FUNCHOST_TEST_LEASE", "15", `FUNCHOST_TEST_LEASE: "15" must be a duration such as 30s`},
		{"FUNCHOST_TEST_SECRET_FILE", "/not/there", `FUNCHOST_TEST_SECRET_FILE: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.name, tt.value)
			err := envsettings.Load(&settings{})
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("a secret given twice", func(t *testing.T) {
		t.Setenv("FUNCHOST_TEST_SECRET", "a")
		t.Setenv("FUNCHOST_TEST_SECRET_FILE", "b")
		if err := envsettings.Load(&settings{}); err == nil || !strings.HasPrefix(err.Error(), "FUNCHOST_TEST_SECRET: ") {
			t.Errorf("error %v", err)
		}
	})
}

func anywhere(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func TestAnInvalidFunctionDoesNotStart(t *testing.T) {
	t.Parallel()
	broker := kafkaevent.Config{Brokers: []string{"127.0.0.1:1"}}
	handle := func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, nil }
	for _, tt := range []struct {
		name string
		cfg  Config
		f    Function
		want string
	}{
		{"no broker", Config{}, Function{Name: "f"}, "KAFKA_BROKERS"},
		{"a transport there is not", Config{Kafka: broker, FuncTransport: "grpc"}, Function{Name: "f"}, "FUNC_TRANSPORT: "},
		{"the gateway on http", Config{Kafka: broker, FuncTransport: "http"},
			Function{Name: "gateway", HTTP: http.NotFoundHandler(), Handle: handle}, "FUNC_TRANSPORT: gateway"},
		{"the worker on http", Config{Kafka: broker, FuncTransport: "http"},
			Function{Name: "runjob", Handle: handle, KafkaOnly: true}, "FUNC_TRANSPORT: runjob"},
		{"ticks that are neither", Config{Kafka: broker, Ticks: "maybe"}, Function{Name: "f"}, "TICKS: "},
		{"a port there is not", Config{Kafka: broker, Port: 70000}, Function{Name: "f"}, "PORT: "},
		{"a negative grace", Config{Kafka: broker, ShutdownGrace: -1}, Function{Name: "f"}, "SHUTDOWN_GRACE: "},
		{"a sink without a scheme", Config{Sink: "broker.example"}, Function{Name: "f"}, "K_SINK: "},
		{"overrides that are no JSON", Config{Sink: "http://broker", CEOverrides: "x"}, Function{Name: "f"}, "K_CE_OVERRIDES: "},
		{"an extension with a bad name", Config{Sink: "http://broker", CEOverrides: `{"extensions":{"a-b":"c"}}`},
			Function{Name: "f"}, "K_CE_OVERRIDES: "},
		{"metrics on no port", Config{Kafka: broker, MetricsPort: 65536}, Function{Name: "f"}, "METRICS_PORT: "},
		{"metrics on the port of all else", Config{Kafka: broker, Port: 8080, MetricsPort: 8080}, Function{Name: "f"}, "METRICS_PORT: "},
		{"metrics at an address that is not here", Config{Kafka: broker, Host: "192.0.2.1", Listener: anywhere(t), MetricsPort: 1},
			Function{Name: "f"}, "HOST and METRICS_PORT: "},
		{"an address that is not here", Config{Kafka: broker, Host: "192.0.2.1", Port: 1}, Function{Name: "f"}, "HOST and PORT: "},
		{"what is for loopback only, on every address", Config{Kafka: broker}, Function{Name: "f", LoopbackFor: "AUTH: off"}, "AUTH: off is for"},
		{"a certificate without its key", Config{Kafka: broker, TLS: TLS{CertFile: "c"}}, Function{Name: "f"}, "TLS_KEY_FILE: "},
		{"a key without its certificate", Config{Kafka: broker, TLS: TLS{KeyFile: "k"}}, Function{Name: "f"}, "TLS_CERT_FILE: "},
		{"a certificate that is not there", Config{Kafka: broker, TLS: TLS{CertFile: "/none", KeyFile: "/none"}}, Function{Name: "f"},
			"TLS_CERT_FILE and TLS_KEY_FILE: "},
		{"a CA for clients without a certificate", Config{Kafka: broker, TLS: TLS{ClientCAFile: "/dev/null"}}, Function{Name: "f"},
			"TLS_CLIENT_CA_FILE: "},
		{"a sink's CA that is none", Config{Sink: "https://broker", SinkCAs: "x"}, Function{Name: "f"}, "K_CA_CERTS: "},
		{"a sink's CA given twice", Config{Sink: "https://broker", SinkCAs: "x", SinkCAFile: "y"}, Function{Name: "f"}, "K_CA_CERTS: "},
		{"TLS required a little", Config{Kafka: broker, RequireTLS: "yes"}, Function{Name: "f"}, "REQUIRE_TLS: "},
		{"no name", Config{Kafka: broker}, Function{}, "host a function"},
		{"topics and no handler", Config{Kafka: broker}, Function{Name: "f", Topics: []string{"t"}}, "host f"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := Run(t.Context(), tt.cfg, tt.f)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestAPartThatFailsEndsTheFunction(t *testing.T) {
	t.Parallel()
	cfg := Config{Kafka: kafkaevent.Config{Brokers: []string{"127.0.0.1:1"}}, NoListen: true}
	err := Run(t.Context(), cfg, Function{Name: "f", Run: func(context.Context, Publish) error { return os.ErrClosed }})
	if err == nil || !strings.Contains(err.Error(), os.ErrClosed.Error()) {
		t.Errorf("error %v", err)
	}
}
