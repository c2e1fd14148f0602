package funchost

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// Env is what Main gives to a function's wiring.
type Env struct {
	Config Config

	closing []func()
}

// needs says what a function cannot do without.
type needs struct{ database bool }

func loadEnv(needs needs) (*Env, error) {
	env := &Env{}
	var own struct {
		DatabaseURL secret.Text `envconfig:"DATABASE_URL"`
	}
	for _, cfg := range []any{&env.Config, &env.Config.Kafka, &env.Config.TLS, &env.Config.Trace, &own} {
		if err := LoadConfig(cfg); err != nil {
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

// Load is LoadConfig, for each struct of a function's own settings, until the first error. Of a struct that has
// Parts, it loads each part, the struct itself among them.
func (e *Env) Load(cfgs ...any) error {
	for _, cfg := range cfgs {
		parts := []any{cfg}
		if whole, ok := cfg.(interface{ Parts() []any }); ok {
			parts = whole.Parts()
		}
		for _, part := range parts {
			if err := LoadConfig(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// Plain names a setting of the function's own by which it would talk in plain text: REQUIRE_TLS refuses the start then.
func (e *Env) Plain(setting string) { e.Config.wires = append(e.Config.wires, setting) }

// OnClose has something closed after the drain, the last added first.
func (e *Env) OnClose(closing func()) { e.closing = append(e.closing, closing) }

func (e *Env) close() {
	for _, closing := range slices.Backward(e.closing) {
		closing()
	}
}

// LoadConfig reads the environment into a pointer to a struct whose fields have envconfig tags. For each
// setting <NAME> of text, or of texts, secret ones too, the environment may instead have <NAME>_FILE, which
// names a file that holds it; of several each may have a line. An error begins with the setting.
func LoadConfig(cfg any) error {
	err := envconfig.Process("", cfg)
	if bad := (*envconfig.ParseError)(nil); errors.As(err, &bad) {
		return fmt.Errorf("%s: %q %s", bad.KeyName, bad.Value, mustBe(bad))
	}
	if err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	return loadFiles(reflect.ValueOf(cfg).Elem())
}

func mustBe(bad *envconfig.ParseError) string {
	switch {
	case errors.Is(bad.Err, strconv.ErrRange):
		return "is out of range"
	case bad.TypeName == "time.Duration":
		return "must be a duration such as 30s"
	case bad.TypeName == "bool":
		return "must be true or false"
	case strings.HasPrefix(bad.TypeName, "int"):
		return "must be a whole number"
	case strings.HasPrefix(bad.TypeName, "float"):
		return "must be a number"
	}
	return "is no " + bad.TypeName
}

// loadFiles fills the settings of text that stand in files.
func loadFiles(cfg reflect.Value) error {
	fields := map[string]reflect.Value{}
	for i := range cfg.NumField() {
		fields[cfg.Type().Field(i).Tag.Get("envconfig")] = cfg.Field(i)
	}
	for name, field := range fields {
		path, given := os.LookupEnv(name + "_FILE")
		if _, own := fields[name+"_FILE"]; name == "" || !given || own || !isText(field) {
			continue
		}
		if os.Getenv(name) != "" {
			return fmt.Errorf("%s: is set, and so is %s_FILE", name, name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s_FILE: %w", name, err)
		}
		setText(field, strings.TrimRight(string(text), "\r\n"))
	}
	return nil
}

func isText(field reflect.Value) bool {
	kind := field.Type()
	if kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	return kind.Kind() == reflect.String || kind == secretText
}

var secretText = reflect.TypeFor[secret.Text]()

// setText takes texts apart at commas, as they are in a variable, and at the ends of lines.
func setText(field reflect.Value, text string) {
	switch {
	case field.Type() == secretText:
		field.Set(reflect.ValueOf(secret.Of(text)))
		return
	case field.Kind() == reflect.String:
		field.SetString(text)
		return
	}
	texts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' })
	field.Set(reflect.MakeSlice(field.Type(), len(texts), len(texts)))
	for i, one := range texts {
		setText(field.Index(i), one)
	}
}
