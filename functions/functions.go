// Package functions lists all functions, for programs that run several of them. Each has a process of its own too, in
// its cmd, which wires it in the same way.
package functions

import (
	"context"

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
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// Wire builds a function from the environment of its process.
type Wire = func(context.Context, *funchost.Env) (funchost.Function, error)

// Wiring is a function's name, and how it is built.
type Wiring struct {
	Name string
	Wire Wire
}

// All are the functions.
var All = []Wiring{
	{gateway.Name, gateway.Wire},
	{projection.Name, projection.Wire},
	{bulk.Name, bulk.Wire},
	{notify.Name, notify.Wire},
	{ingest.Name, ingest.Wire},
	{dispatch.Name, dispatch.Wire},
	{outcome.Name, outcome.Wire},
	{command.Name, command.Wire},
	{watchdog.Name, watchdog.Wire},
	{retention.Name, retention.Wire},
	{cron.Name, cron.Wire},
	{runjob.Name, runjob.Wire},
	{pull.Name, pull.Wire},
	{relay.Name, relay.Wire},
}

// Find returns the Wire of a function; nil: there is none with this name.
func Find(name string) Wire {
	for _, f := range All {
		if f.Name == name {
			return f.Wire
		}
	}
	return nil
}
