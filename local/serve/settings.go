package serve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// Settings are those that only serve has.
type Settings struct {
	Database  secret.Text `envconfig:"DATABASE_URL" infile:"file:" desc:"a database of the server on which serve makes the three databases and brings them up to date"`
	API       secret.Text `envconfig:"API_DATABASE_URL" infile:"file:" desc:"the database jobweaver_api, with a role of its own, instead of DATABASE_URL's; a file of it is read at each connection"`
	Scheduler secret.Text `envconfig:"SCHEDULER_DATABASE_URL" infile:"file:" desc:"the same for jobweaver_scheduler"`
	Worker    secret.Text `envconfig:"WORKER_DATABASE_URL" infile:"file:" desc:"the same for jobweaver_worker"`

	APIDirect       secret.Text `envconfig:"API_DATABASE_DIRECT_URL" infile:"file:" desc:"the server itself, if API_DATABASE_URL leads to a connection pooler"`
	SchedulerDirect secret.Text `envconfig:"SCHEDULER_DATABASE_DIRECT_URL" infile:"file:" desc:"the same for SCHEDULER_DATABASE_URL"`
	WorkerDirect    secret.Text `envconfig:"WORKER_DATABASE_DIRECT_URL" infile:"file:" desc:"the same for WORKER_DATABASE_URL"`

	BrokerMemory int `envconfig:"BROKER_MEMORY" default:"128" desc:"MiB of events that the broker of the process keeps at most, if KAFKA_BROKERS is not set; what is beyond is published again later"`

	PullPort int `envconfig:"PULL_PORT" desc:"port on which pull serves gateways of other processes, whose PULL_URL names it; 0: only the gateway of this process"`

	layout migrations.Layout
}

// loadSettings reads the settings, and completes all addresses.
func loadSettings() (s Settings, err error) {
	var more pgpool.Settings
	if err := errors.Join(envsettings.Load(&s), envsettings.Load(&more), envsettings.Load(&s.layout)); err != nil {
		return s, err
	}
	if own := s.API.Reveal() + s.Scheduler.Reveal() + s.Worker.Reveal(); more.Direct.IsSet() && own != "" {
		return s, errors.New("DATABASE_DIRECT_URL: is set, and names the server of DATABASE_URL alone: " +
			"API_DATABASE_URL has its own API_DATABASE_DIRECT_URL, and so have the others")
	}
	// A pooler gives all sessions of a role in one database the same search path.
	if s.layout.Schemas && more.Direct.IsSet() {
		return s, errors.New("DATABASE_SCHEMAS: is true, and DATABASE_URL leads to a pooler, behind which each schema " +
			"needs a role of its own: make them by jobweaver migrate --services, and set API_DATABASE_URL and so on")
	}
	if err := s.layout.Installation.Check(); err != nil {
		return s, err
	}
	for address, direct := range map[*secret.Text]secret.Text{
		&s.Database: more.Direct, &s.API: s.APIDirect, &s.Scheduler: s.SchedulerDirect, &s.Worker: s.WorkerDirect,
	} {
		more.Direct = direct
		text, err := more.Complete(address.Reveal())
		if err != nil {
			return s, err
		}
		*address = secret.Of(text)
	}
	return s, nil
}

// of returns the address of a set's database; empty: it is one on the server of DATABASE_URL.
func (s Settings) of(set string) string {
	switch set {
	case migrations.API.Name:
		return s.API.Reveal()
	case migrations.Scheduler.Name:
		return s.Scheduler.Reveal()
	default:
		return s.Worker.Reveal()
	}
}

// setOf returns the set of a function's database; false: it has none, as the relay.
func setOf(function string) (migrations.Set, bool) {
	for _, set := range (migrations.Layout{}).Sets() {
		if slices.Contains(set.Functions, function) {
			return set, true
		}
	}
	return migrations.Set{}, false
}

// groups are the names that stand for several functions.
var groups = map[string][]string{
	"api": migrations.API.Functions, "scheduler": migrations.Scheduler.Functions, "worker": {runjob.Name},
}

// choose returns the names of the functions to run, in the order of functions.All. No names stand for all, except pull
// without a queue for it and relay without an outbox.
func choose(names, queues []string) (chosen []string, err error) {
	pulled, err := pullQueues(queues)
	if err != nil {
		return nil, err
	}
	var relayed relay.Config
	if err := envsettings.Load(&relayed); err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		members, isGroup := groups[name]
		if !isGroup {
			members = []string{name}
		}
		for _, member := range members {
			if functions.Find(member) == nil {
				return nil, fmt.Errorf("--functions: %q is neither a function nor api, scheduler or worker", name)
			}
			wanted[member] = true
		}
	}
	for _, f := range functions.All {
		isIdle := f.Name == pull.Name && len(pulled) == 0 ||
			f.Name == relay.Name && relayed.DatabasesFile == "" && !relayed.Database.IsSet()
		if wanted[f.Name] || len(names) == 0 && !isIdle {
			chosen = append(chosen, f.Name)
		}
	}
	return chosen, nil
}

func pullQueues(queues []string) ([]string, error) {
	var cfg runjob.PullQueues
	if err := envsettings.Load(&cfg); err != nil {
		return nil, err
	}
	return cfg.Of(queues), nil
}

// needsAll returns an error unless all functions run here that an installation cannot do without.
func needsAll(chosen []string) error {
	var missing []string
	for _, group := range groups {
		for _, name := range group {
			if !slices.Contains(chosen, name) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("KAFKA_BROKERS: is not set, and no other process reaches the broker in this one, "+
		"so all functions must run in it; --functions lacks %s", strings.Join(missing, ", "))
}

// check refuses settings that a process with several functions cannot have.
func check(cfg funchost.Config) error {
	switch {
	case cfg.Sink != "":
		return errors.New("K_SINK: is set, and serve publishes to brokers only")
	case cfg.FuncTransport != funchost.TransportKafka:
		return fmt.Errorf("FUNC_TRANSPORT: serve is driven by %s only", funchost.TransportKafka)
	}
	return nil
}
