package manifests

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/jobweaver/jobweaver/functions/bulk"
	"github.com/jobweaver/jobweaver/functions/command"
	"github.com/jobweaver/jobweaver/functions/cron"
	"github.com/jobweaver/jobweaver/functions/dispatch"
	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/ingest"
	"github.com/jobweaver/jobweaver/functions/notify"
	"github.com/jobweaver/jobweaver/functions/outcome"
	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Function is a function as the code defines it.
type Function struct {
	funchost.Function

	Settings []any // the structs that are read from its environment, except for those of every function
}

// Functions returns all functions as the code hosts them, but without databases.
func Functions() (map[string]Function, error) {
	none := new(apidb.Store)
	signing := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))
	notifies, err := notify.New(notify.Config{Webhook: webhook.Config{Secrets: secret.Texts{secret.Of(signing)}}}, none)
	if err != nil {
		return nil, err
	}
	crons, err := cron.New(cron.Config{}, none)
	if err != nil {
		return nil, err
	}
	projects, err := projection.New(projection.Config{}, none)
	if err != nil {
		return nil, err
	}
	scheduling := []any{schedulerdb.Config{}}
	all := map[string]Function{}
	for _, f := range []Function{
		{bulk.New(none).Host(), nil},
		{command.New(nil).Host(), scheduling},
		{crons.Host(), new(cron.Config).Parts()},
		{dispatch.New(nil).Host(), scheduling},
		{ingest.New(nil).Host(), scheduling},
		{notifies.Host(), new(notify.Config).Parts()},
		{outcome.New(nil).Host(), scheduling},
		{new(relay.Function).Host(), []any{relay.Config{}}},
		{projects.Host(), []any{projection.Config{}}},
		{watchdog.New(nil).Host(), scheduling},
		// The functions from here on are not made by their constructors: these need settings or open connections.
		{
			funchost.Function{Name: retention.Name, Tick: new(retention.Function).Tick},
			[]any{schedulerdb.Config{}, schedulerdb.Retention{}},
		},
		{funchost.Function{Name: gateway.Name, KafkaOnly: true}, new(gateway.Config).Parts()},
		{funchost.Function{Name: pull.Name, KafkaOnly: true}, new(pull.Config).Parts()},
		{
			funchost.Function{Name: runjob.Name, KafkaOnly: true},
			append(new(runjob.Config).Parts(), new(handlers.Config).Parts()...),
		},
	} {
		all[f.Name] = f
	}
	return all, nil
}

// Folders are the functions that have a folder.
func Folders() ([]string, error) {
	mains, err := filepath.Glob(filepath.Join("..", "..", "functions", "*", "cmd"))
	if err != nil || len(mains) == 0 {
		return nil, fmt.Errorf("find functions: %w", os.ErrNotExist)
	}
	names := make([]string, len(mains))
	for i, main := range mains {
		names[i] = filepath.Base(filepath.Dir(main))
	}
	return names, nil
}

// Knows reports whether the function reads a setting: NAME, or NAME_FILE for a text.
func (f Function) Knows(setting string) bool {
	if setting == "GOMEMLIMIT" || setting == "GOGC" || setting == "DATABASE_URL" || setting == "DATABASE_URL_FILE" {
		return true // Go's own, and every function's
	}
	for _, cfg := range append([]any{funchost.Config{}, funchost.TLS{}, kafkaevent.Config{}}, f.Settings...) {
		for field := range reflect.Indirect(reflect.ValueOf(cfg)).Type().Fields() {
			name := field.Tag.Get("envconfig")
			if name != "" && (setting == name || setting == name+"_FILE" && isText(field.Type)) {
				return true
			}
		}
	}
	return false
}

func isText(t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.String || t == reflect.TypeFor[secret.Text]()
}

// TopicsOf returns the topics of event types; the queue of a run event is the default one.
func TopicsOf(types ...string) (map[string]string, error) {
	topics := map[string]string{}
	for _, typ := range types {
		e, err := jobevent.New(typ, jobevent.Meta{Function: "test", ID: "1"}, nil)
		if err != nil {
			return nil, err
		}
		if topics[typ], err = e.Topic(); err != nil {
			return nil, err
		}
	}
	return topics, nil
}
