package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/local/serve"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/publicurl"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Installation is what the checks look at.
type Installation struct {
	Environments []Environment
	Databases    []Database
	Now          func() time.Time // the clock of this machine

	limits limits
}

// Environment has the settings of one process.
type Environment struct {
	Name      string // of the function; Serve: all functions
	Host      funchost.Config
	Webhook   webhook.Config
	Callback  webhook.CallbackConfig
	Sealing   sealing.Config
	Public    publicurl.Config
	Callbacks callbackURL
	Auth      string            // of the gateway
	Files     map[string]string // the settings whose value is in a file, with its path
	Wrong     []error           // settings that cannot be read
	Misspelt  []string
}

type callbackURL struct {
	URL string `envconfig:"CALLBACK_URL"`
}

// Database is a database as one process connects to it.
type Database struct {
	Set      migrations.Set
	Function string      // whose role the user is; Serve: all functions of the set
	Acts     bool        // the user takes the role of the service
	Address  secret.Text // as pgpool reads it
}

// Serve stands for a process with all functions.
const Serve = "serve"

// Load reads the installation from the environment of this process, as serve does.
func Load() (*Installation, error) {
	layout, at, acts, err := serve.Databases()
	if err != nil {
		return nil, err
	}
	i := &Installation{Environments: []Environment{environment(Serve)}, Now: time.Now, limits: usual}
	for _, set := range layout.Sets() {
		i.Databases = append(i.Databases, Database{set, Serve, acts[set.Name], secret.Of(at[set.Name])})
	}
	return i, nil
}

// LoadFolder reads the installation from the files of systemd units: all.env and <function>.env.
func LoadFolder(dir string) (*Installation, error) {
	i := &Installation{Now: time.Now, limits: usual}
	common, err := variables(filepath.Join(dir, "all.env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, set := range (migrations.Layout{}).Sets() {
		for _, function := range set.Functions {
			own, err := variables(filepath.Join(dir, function+".env"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			within(append(common, own...), func() {
				env := environment(function)
				var layout migrations.Layout
				address, err := ownDatabase()
				if err := errors.Join(err, envsettings.Load(&layout)); err != nil {
					env.Wrong = append(env.Wrong, err)
				} else {
					i.Databases = append(i.Databases, Database{layout.Of(set), function, false, secret.Of(address)})
				}
				i.Environments = append(i.Environments, env)
			})
		}
	}
	if len(i.Environments) == 0 {
		return nil, fmt.Errorf("%s has no file of a function, such as gateway.env", dir)
	}
	return i, nil
}

func ownDatabase() (string, error) {
	var own struct {
		URL secret.Text `envconfig:"DATABASE_URL" infile:"file:"` // pgpool.InFile
	}
	var more pgpool.Settings
	if err := errors.Join(envsettings.Load(&own), envsettings.Load(&more)); err != nil {
		return "", err
	}
	if !own.URL.IsSet() {
		return "", errors.New("DATABASE_URL: is not set")
	}
	return more.Complete(own.URL.Reveal())
}

// environment reads the environment of this process.
func environment(name string) Environment {
	e := Environment{Name: name, Files: map[string]string{}, Misspelt: envsettings.NearMisses(os.Environ())}
	if _, set := os.LookupEnv("QUEUES"); !set && name == Serve {
		within(append(os.Environ(), "QUEUES=default,pull"), func() { e.read() })
	} else {
		e.read()
	}
	for _, pair := range os.Environ() {
		if setting, path, _ := strings.Cut(pair, "="); strings.HasSuffix(setting, "_FILE") && path != "" {
			e.Files[setting] = path
		}
	}
	return e
}

func (e *Environment) read() {
	var gate gateway.Config
	for _, part := range []any{
		&e.Host, &e.Host.Kafka, &e.Host.TLS, &e.Webhook, &e.Callback, &e.Sealing, &e.Public, &e.Callbacks, &gate,
	} {
		if err := envsettings.Load(part); err != nil {
			e.Wrong = append(e.Wrong, err)
		}
	}
	e.Auth = gate.Auth
	if _, err := e.Public.Base(); err != nil {
		e.Wrong = append(e.Wrong, err)
	}
	if len(e.Host.Kafka.Brokers) > 0 {
		if _, err := e.Host.Kafka.Sarama(); err != nil {
			e.Wrong = append(e.Wrong, err)
		}
	}
}

// runs reports whether the process runs one of the functions.
func (e *Environment) runs(functions ...string) bool {
	for _, function := range functions {
		if e.Name == Serve || e.Name == function {
			return true
		}
	}
	return false
}

// kafka returns the first settings that name brokers, with the queues beside them.
func (i *Installation) kafka() (cfg kafkaevent.Config, queues []string) {
	for _, e := range i.Environments {
		if len(e.Host.Kafka.Brokers) > 0 {
			return e.Host.Kafka, e.Host.Queues
		}
	}
	return cfg, nil
}

// shownAtMost is the length below which a text is no secret: hiding it would make messages unreadable.
const shownAtMost = 4

// secrets are texts that nothing may show.
func (i *Installation) secrets() (all []string) {
	for _, e := range i.Environments {
		all = append(append(all, e.Webhook.Secrets.Reveal()...), e.Callback.Secrets.Reveal()...)
		all = append(all, e.Host.Kafka.SASLPassword.Reveal())
	}
	for _, d := range i.Databases {
		if cfg, err := pgpool.ReadAddress(d.Address.Reveal()); err == nil {
			all = append(all, cfg.Password)
		}
	}
	return slices.DeleteFunc(all, func(text string) bool { return len(text) < shownAtMost })
}

// variables reads an EnvironmentFile of systemd.
func variables(path string) (pairs []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		name, value, is := strings.Cut(line, "=")
		if !is || strings.ContainsAny(line[:1], "#;") {
			continue
		}
		if n := len(value); n > 1 && (value[0] == '\'' || value[0] == '"') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		pairs = append(pairs, name+"="+value)
	}
	return pairs, lines.Err()
}

// within does something with another environment of this process.
func within(pairs []string, do func()) {
	before := os.Environ()
	become := func(pairs []string) {
		os.Clearenv()
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			_ = os.Setenv(name, value) // fails for no name, which a process cannot have either
		}
	}
	become(pairs)
	defer become(before)
	do()
}
