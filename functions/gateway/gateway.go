// Package gateway serves the API: it accepts jobs over REST and CloudEvents, and reports their states. Every request
// that it answers with a 2xx is committed in the api database. It tries once to publish the events of a request; if
// that fails, projection republishes them.
package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/dashboard"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/fanouts"
	"github.com/jobweaver/jobweaver/functions/gateway/held"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/functions/gateway/keys"
	"github.com/jobweaver/jobweaver/functions/gateway/monitor"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/functions/gateway/queues"
	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/publicurl"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "gateway"

// Function serves HTTP and publishes the events of accepted requests.
type Function struct {
	cfg      Config
	store    stores
	auth     *edge.Authenticator
	limits   *edge.Limits
	auditLog *audit.Log
	refusals *edge.Refusals
	unserved telemetry.Trouble // of requests that are answered with 503; ready notes its end
	api      endpoints
	page     dashboard.Page
	base     string // the path below which clients reach it
	http     http.Handler

	bootstrap *keys.Bootstrap
	accepted  *monitor.AcceptedCount
	hub       *changes.Hub // of streams and waiting requests
	jobEnds   *waiters.Waiters
	opEnds    *waiters.Waiters // of operations
	batchEnds *waiters.Waiters
	outgoing  *publishbuffer.Buffer
	held      *held.Releaser
	fanOuts   *fanouts.Runner
	queues    *queues.Installation
	served    chan struct{} // closed when the last request has been answered
}

// New makes the function on the api database. An error begins with the name of the wrong setting.
func New(cfg Config, db *apidb.Store) (*Function, error) {
	if cfg.Auth == "" {
		cfg.Auth = AuthOn
	}
	s, err := readSettings(cfg)
	if err != nil {
		return nil, err
	}
	store := newStores(db)
	store.operations.Limit(cfg.Limits.OperationLimit)
	store.schedules.Limit(cfg.Limits.ScheduleLimit)
	hub := changes.New(db, store.jobs, store.controls, store.logs)
	f := &Function{
		cfg: cfg, store: store, limits: s.limits, hub: hub, base: s.base,
		auth:      &edge.Authenticator{Limits: s.limits},
		refusals:  edge.NewRefusals(),
		auditLog:  &audit.Log{Store: store.auditLog, Reads: cfg.AuditReads},
		unserved:  telemetry.Trouble{What: "serve requests", Quiet: 5 * time.Second},
		jobEnds:   waiters.New(store.jobs.Ended, hub.IsNotified),
		opEnds:    waiters.New(store.operations.EndedOperations, waiters.Never),
		batchEnds: waiters.New(store.batches.Ended, waiters.Never),
		outgoing:  publishbuffer.New(),
		accepted:  monitor.NewAcceptedCount(store.jobs),
		served:    make(chan struct{}),
	}
	f.held = held.New(store.jobs, f.outgoing)
	f.queues = &queues.Installation{Fixed: cfg.Queues, Store: store.queues}
	s.rules.Learned = jobtypes.Learned(store.types)
	ofElements := s.rules
	s.rules.Created, ofElements.Created = f.queues.Created, f.queues.CreatedOrRemoving
	f.fanOuts = &fanouts.Runner{
		Store: store.batches, Callbacks: store.callbacks, Commands: store.commands, Outgoing: f.outgoing,
		Rules: schedulestore.Rules{Rules: ofElements, Defaults: s.defaults, Sealer: s.sealer},
		Check: func(ctx context.Context) jobtypes.Check { return f.api.submit.Payloads.Check(ctx) },
	}
	if cfg.Auth == AuthOn {
		f.auth.Gate = &access.Gate{Keys: access.NewKeyring(store.keys), Tokens: s.tokens}
		f.bootstrap = keys.NewBootstrap(s.bootstrapKey, store.keys, f.auth.Gate.Keys)
	} else {
		f.bootstrap = keys.NewBootstrap(nil, store.keys, nil)
	}
	f.api = f.newEndpoints(s)
	events := f.api.stream
	hub.Ends, hub.ShowJob, hub.ShowLines, hub.ReadStats = f.jobEnds, events.ShowJob, events.ShowLines, events.ReadStats
	hub.ForgetQueues = store.queues.Forget
	if f.page, err = dashboard.Open(); err != nil {
		return nil, err
	}
	f.page.Below(f.base)
	f.page.Connect = f.api.login.Origins
	f.http, err = edge.Compress(f.Handler(), streamPath)
	f.http = publicurl.Below(f.base, f.http)
	return f, err
}

// Host returns how the function is hosted.
func (f *Function) Host() funchost.Function {
	host := funchost.Function{
		Name: Name, HTTP: f.http, HTTPMetrics: true, HTTPEnded: sync.OnceFunc(func() { close(f.served) }),
		Run: f.Run, Ready: f.ready, Pool: f.store.Connections, KafkaOnly: true,
	}
	if f.cfg.Auth == AuthOff {
		host.LoopbackFor = "AUTH: off"
	}
	return host
}

// ready reports whether the database answers and BOOTSTRAP_API_KEY is stored. If it did not wait for the key, the first
// client of a new installation, which sends requests as soon as the gateway is ready, would get a 401.
func (f *Function) ready(ctx context.Context) error {
	select {
	case <-f.bootstrap.Done():
		err := f.store.Ping(ctx)
		if err == nil {
			f.unserved.Note(ctx, nil)
		}
		return err
	case <-ctx.Done():
		return errors.New("BOOTSTRAP_API_KEY is not stored yet")
	}
}

// Run publishes the events of accepted requests, and wakes requests that wait for an end. When ctx ends it wakes all
// waiting requests at once, and continues to publish until HTTP has ended, too: then no request is left that could add
// events.
func (f *Function) Run(ctx context.Context, publish funchost.Publish) error {
	if f.api.callbacks.Keys.Empty() {
		telemetry.Logger(ctx).WarnContext(ctx, "no callback is accepted: CALLBACK_SECRETS is not set")
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var all errgroup.Group
	run := func(ctx context.Context, part func(context.Context)) {
		all.Go(func() error { part(ctx); return nil })
	}
	run(ctx, f.jobEnds.Run)
	run(ctx, f.opEnds.Run)
	run(ctx, f.batchEnds.Run)
	run(ctx, f.hub.Run)
	run(ctx, f.held.Run)
	run(ctx, f.fanOuts.Run)
	run(ctx, f.api.queues.Run)
	run(serving, f.hub.RunAnnouncements)
	run(serving, func(ctx context.Context) { funchost.Listen(ctx, make(chan struct{}, 1), f.store.FollowWatchers) })
	run(serving, func(ctx context.Context) { f.outgoing.Run(ctx, publish) })
	run(serving, f.accepted.Run)
	run(serving, f.refusals.Run)
	if f.auth.Gate != nil {
		run(serving, f.auth.Gate.Keys.Run)
		run(ctx, f.bootstrap.Run)
	}
	<-ctx.Done()
	<-f.served
	f.api.pull.Close()
	end()
	return all.Wait()
}
