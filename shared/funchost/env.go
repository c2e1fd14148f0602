package funchost

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Env has what Main passes to a function's wiring.
type Env struct {
	Config  Config
	Metrics prometheus.Registerer // of the function, beside those of its host

	adjust  func(cfg any) error // changes settings after they are read; nil: nothing does
	closing []func()
}

// NewEnv returns the Env of a function that a program runs beside others, with the address of its database. adjust may
// change each struct of settings after it is read. The program calls Close after it has run the function.
func NewEnv(cfg Config, database string, adjust func(cfg any) error) *Env {
	cfg.database = secret.Of(database)
	return &Env{Config: cfg, Metrics: prometheus.DefaultRegisterer, adjust: adjust}
}

// Needs has what a function requires of its environment.
type Needs struct{ Database bool }

func loadEnv(needs Needs) (*Env, error) {
	var own struct {
		DatabaseURL secret.Text `envconfig:"DATABASE_URL" infile:"file:"` // pgpool.InFile
	}
	var more pgpool.Settings
	cfg, err := LoadConfig()
	if err == nil {
		err = errors.Join(envsettings.Load(&own), envsettings.Load(&more))
	}
	if err != nil {
		return nil, err
	}
	if needs.Database && !own.DatabaseURL.IsSet() {
		return nil, errors.New("DATABASE_URL: is not set")
	}
	address, err := more.Complete(own.DatabaseURL.Reveal())
	if err != nil {
		return nil, err
	}
	cfg.database, cfg.alone = secret.Of(address), !needs.Database
	return &Env{Config: cfg, Metrics: prometheus.DefaultRegisterer}, nil
}

// LoadConfig reads the settings that every function has.
func LoadConfig() (cfg Config, err error) {
	for _, part := range []any{&cfg, &cfg.Kafka, &cfg.TLS, &cfg.Trace} {
		if err := envsettings.Load(part); err != nil {
			return cfg, err
		}
	}
	if len(cfg.Queues) == 0 { // QUEUES is set to an empty list
		return cfg, errors.New("QUEUES: names no queue")
	}
	cfg.Kafka.Keys, err = cfg.topicVerifier()
	return cfg, err
}

// DatabaseURL returns DATABASE_URL, or pgpool's address of its file. Main has checked that it is set.
func (e *Env) DatabaseURL() string { return e.Config.database.Reveal() }

// OwnPlaces returns the addresses to which the process itself connects, as host or host:port: the sink, the brokers and
// the database. No URL of a request may lead there. The sink is denied on all ports, as it may have another one for
// TLS.
func (e *Env) OwnPlaces() []string {
	places := slices.Clone(e.Config.Kafka.Brokers)
	if sink, err := url.Parse(e.Config.Sink); err == nil && sink.Hostname() != "" {
		place := sink.Hostname()
		if tlsfiles.IsLoopback(place) {
			place = net.JoinHostPort(place, cmp.Or(sink.Port(), map[string]string{"http": "80", "https": "443"}[sink.Scheme]))
		}
		places = append(places, place)
	}
	return append(places, pgpool.Places(e.DatabaseURL())...)
}

// Load calls envsettings.Load for each struct of a function's own settings, until the first error. If a struct has
// Parts, it loads each of them, which include the struct itself.
func (e *Env) Load(cfgs ...any) error {
	for _, cfg := range cfgs {
		parts := []any{cfg}
		if whole, ok := cfg.(interface{ Parts() []any }); ok {
			parts = whole.Parts()
		}
		for _, part := range parts {
			err := envsettings.Load(part)
			if err == nil && e.adjust != nil {
				err = e.adjust(part)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Plain names a setting of the function's own with which it would send plain text: REQUIRE_TLS then refuses the start.
func (e *Env) Plain(setting string) { e.Config.plainSettings = append(e.Config.plainSettings, setting) }

// OnClose registers a function to be called after the drain, the last one first.
func (e *Env) OnClose(closing func()) { e.closing = append(e.closing, closing) }

// Close calls the functions of OnClose.
func (e *Env) Close() {
	for _, closing := range slices.Backward(e.closing) {
		closing()
	}
}
