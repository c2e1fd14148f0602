package gateway

import (
	"github.com/jobweaver/jobweaver/functions/gateway/alerts"
	"github.com/jobweaver/jobweaver/functions/gateway/batches"
	"github.com/jobweaver/jobweaver/functions/gateway/callbacks"
	"github.com/jobweaver/jobweaver/functions/gateway/coalesce"
	"github.com/jobweaver/jobweaver/functions/gateway/commands"
	"github.com/jobweaver/jobweaver/functions/gateway/controls"
	"github.com/jobweaver/jobweaver/functions/gateway/dashboard"
	"github.com/jobweaver/jobweaver/functions/gateway/deliveries"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/hooks"
	"github.com/jobweaver/jobweaver/functions/gateway/jobs"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/functions/gateway/keys"
	"github.com/jobweaver/jobweaver/functions/gateway/monitor"
	"github.com/jobweaver/jobweaver/functions/gateway/operations"
	"github.com/jobweaver/jobweaver/functions/gateway/pullworkers"
	"github.com/jobweaver/jobweaver/functions/gateway/queues"
	"github.com/jobweaver/jobweaver/functions/gateway/rejected"
	"github.com/jobweaver/jobweaver/functions/gateway/schedules"
	"github.com/jobweaver/jobweaver/functions/gateway/stream"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/functions/gateway/waits"
)

// endpoints are the handlers of all routes, by feature.
type endpoints struct {
	jobs           *jobs.API
	submit         *submit.API
	commands       *commands.API
	callbacks      *callbacks.API
	operations     *operations.API
	batches        *batches.API
	schedules      *schedules.API
	alerts         *alerts.API
	deliveries     *deliveries.API
	hooks          *hooks.API
	controls       *controls.API
	queues         *queues.API
	rejected       *rejected.API
	monitor        *monitor.API
	jobTypes       *jobtypes.API
	stream         *stream.API
	pull           *pullworkers.API
	waits          *waits.API
	keys           *keys.API
	webhookSecrets *keys.WebhookSecrets
	login          *dashboard.Login
}

// newEndpoints makes the handlers.
func (f *Function) newEndpoints(s settings) endpoints {
	store, api, sealed := f.store, endpoints{}, edge.NewSealWarning()
	payloads := jobtypes.NewPayloads(store.workers.AdvertisedTypes, store.types)

	api.jobs = &jobs.API{
		Store: store.jobs, Stats: store.stats, Logs: store.logs, Hub: f.hub, Ends: f.jobEnds, Auth: f.auth, Audit: f.auditLog,
		Sealer: s.sealer, Sealed: sealed, Waits: store.waits,
	}
	api.submit = &submit.API{
		DB: store.Store, Store: store.jobs, Rules: s.rules, Defaults: s.defaults, Payloads: payloads,
		Jobs: api.jobs, Hub: f.hub, Outgoing: f.outgoing, Limits: f.limits, Sealer: s.sealer,
		Held: f.held, Waits: store.waits,
		Singles: &coalesce.Coalescer{Insert: store.jobs.InsertJobs, Patience: edge.RequestPatience},
		Ordered: &coalesce.Coalescer{Insert: store.jobs.InsertJobs, Patience: edge.RequestPatience},
	}
	api.hooks = hooks.NewAPI(s.hooks, api.submit, f.auth)
	api.commands = &commands.API{
		Store: store.commands, Submit: api.submit, Hub: f.hub, Outgoing: f.outgoing, Limits: f.limits,
	}
	api.callbacks = &callbacks.API{
		Store: store.jobs, Callbacks: store.callbacks, Keys: s.callbackKeys, Hub: f.hub, Outgoing: f.outgoing,
		Limits: f.limits, Sealer: s.sealer, OpenAliases: f.cfg.AliasCallbacks,
	}
	api.operations = &operations.API{
		DB: store.Store, Store: store.operations, Ends: f.opEnds, Limits: f.limits, Auth: f.auth, Sealer: s.sealer,
	}
	api.batches = &batches.API{
		DB: store.Store, Store: store.batches, Submit: api.submit, Ends: f.batchEnds, Limits: f.limits, Auth: f.auth,
		Audit: f.auditLog, Sealed: sealed,
	}
	api.schedules = &schedules.API{
		Store: store.schedules, Rules: s.rules, Defaults: s.defaults, Payloads: payloads, Hub: f.hub, Outgoing: f.outgoing,
		Limits: f.limits, Audit: f.auditLog, Sealer: s.sealer, Sealed: sealed,
	}
	api.alerts = &alerts.API{
		Store: store.alerts, Hub: f.hub, Outgoing: f.outgoing, Limits: f.limits, Queues: f.cfg.Queues, Sealer: s.sealer,
		Sealed: sealed,
	}
	api.deliveries = &deliveries.API{Store: store.deliveries}
	api.controls = &controls.API{
		Store: store.controls, Workers: store.workers, Queues: f.queues, Hub: f.hub, Outgoing: f.outgoing,
		Limits: f.limits, Closing: f.jobEnds.Closing(),
	}
	api.queues = &queues.API{
		Installation: f.queues, Controls: store.controls, Workers: store.workers, Stats: store.stats,
		Topics: f.cfg.Topics, Hub: f.hub, Outgoing: f.outgoing,
	}
	api.rejected = &rejected.API{
		Store: store.rejected, Queues: f.queues, PublishAgain: f.cfg.Redrive, Audit: f.auditLog,
	}
	api.monitor = &monitor.API{
		Stats: store.stats, Controls: store.controls, Workers: store.workers, Broker: monitor.NewBroker(f.cfg.Broker),
		Lags: monitor.NewLags(f.cfg.Lags), Auth: f.auth, Audit: f.auditLog, Sealer: s.sealer, Unserved: &f.unserved,
	}
	api.pull = pullworkers.New(s.pull, store.jobs, f.auth)
	api.waits = &waits.API{Store: store.waits, Pull: api.pull, Submit: api.submit, Jobs: api.jobs, Sealer: s.sealer}
	api.jobTypes = &jobtypes.API{Workers: store.workers, Types: store.types, Rules: s.rules}
	api.stream = &stream.API{
		Store: store.jobs, Logs: store.logs, Stats: store.stats, Jobs: api.jobs, Hub: f.hub, Limits: f.limits,
		Auth: f.auth, Audit: f.auditLog,
	}
	api.keys = &keys.API{
		Store: store.keys, Auth: f.auth, MaxAge: f.cfg.KeyMaxAge, TraceURL: f.cfg.TraceURL, Sealing: s.sealer != nil,
	}
	api.webhookSecrets = &keys.WebhookSecrets{Ends: s.ends, Calls: s.calls, Audit: f.auditLog}
	api.login = &dashboard.Login{Auth: f.cfg.Auth, Gate: f.auth.Gate}
	return api
}
