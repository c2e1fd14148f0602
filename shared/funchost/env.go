package funchost

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"

	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Env is what Main gives to a function's wiring.
type Env struct {
	Config Config

	closing []func()
}

// needs names what a function cannot do without.
type needs struct{ database bool }

func loadEnv(needs needs) (*Env, error) {
	env := &Env{}
	var own struct {
		DatabaseURL secret.Text `envconfig:"DATABASE_URL"`
	}
	for _, cfg := range []any{&env.Config, &env.Config.Kafka, &env.Config.TLS, &env.Config.Trace, &own} {
		if err := envsettings.Load(cfg); err != nil {
			return nil, err
		}
	}
	if needs.database && !own.DatabaseURL.IsSet() {
		return nil, errors.New("DATABASE_URL: is not set")
	}
	if len(env.Config.Queues) == 0 { // QUEUES is set, and empty
		return nil, errors.New("QUEUES: names no queue")
	}
	env.Config.database, env.Config.alone = own.DatabaseURL, !needs.database
	var err error
	env.Config.Kafka.Keys, err = env.Config.topicVerifier()
	return env, err
}

// DatabaseURL is DATABASE_URL. Main has checked that there is one.
func (e *Env) DatabaseURL() string { return e.Config.database.Reveal() }

// OwnPlaces are what the process itself talks to, as host or host:port: the sink, the brokers and the database. No URL
// of a request may lead there. The sink is denied on each port, as it may have one for TLS, too.
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

// Load is envsettings.Load, for each struct of a function's own settings, until the first error. Of a struct that has
// Parts, it loads each part, the struct itself among them.
func (e *Env) Load(cfgs ...any) error {
	for _, cfg := range cfgs {
		parts := []any{cfg}
		if whole, ok := cfg.(interface{ Parts() []any }); ok {
			parts = whole.Parts()
		}
		for _, part := range parts {
			if err := envsettings.Load(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// Plain names a setting of the function's own by which it would talk in plain text: REQUIRE_TLS refuses the start then.
func (e *Env) Plain(setting string) { e.Config.plainSettings = append(e.Config.plainSettings, setting) }

// OnClose has something closed after the drain, the last added first.
func (e *Env) OnClose(closing func()) { e.closing = append(e.closing, closing) }

func (e *Env) close() {
	for _, closing := range slices.Backward(e.closing) {
		closing()
	}
}
