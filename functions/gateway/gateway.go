// Package gateway serves the API: REST and CloudEvents in, jobs as they stand out. What it answers
// with 2xx is committed in the API's database; telling the others is tried once, and after that
// projection's.
package gateway

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/coalesce"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Name is the function's name.
const Name = "gateway"

// Config is what an installation allows, and what the host knows.
type Config struct {
	Auth string `envconfig:"AUTH" default:"on" desc:"off: no authentication; allowed only if HTTP listens on a loopback address"`

	BootstrapKey secret.Text `envconfig:"BOOTSTRAP_API_KEY" desc:"an API key that is stored at the start as an installation administrator's, unless it was revoked"`

	JobTypes []string `envconfig:"JOB_TYPES" desc:"job types beside the built-in ones; * allows every name"`
	Queues   []string `ignored:"true"` // that a job may name

	Aliases        bool `envconfig:"ALIASES" default:"true" desc:"false: the paths and names of other systems, such as POST /jobs and maxAttempts, are not known"`
	AliasCallbacks bool `envconfig:"ALIAS_CALLBACKS" desc:"true: POST /jobs/callback needs neither attempt nor secret; any client that reaches it can end a job that waits for a callback"`

	AuditReads bool `envconfig:"AUDIT_READS" desc:"true: the audit log also records reads of payloads, outputs and log lines"`

	TraceURL string `envconfig:"TRACE_URL" desc:"URL of a trace in your trace UI, with {traceId} in place of its 32 hexadecimal digits, such as https://jaeger.example.org/trace/{traceId}: the dashboard links each job to its trace; empty: no link"`

	HooksFile string `envconfig:"HOOKS_FILE" desc:"YAML file of the hooks, by which signed requests of other systems to /hooks/<name> become jobs; it is read again when it changes; empty: no hook"`

	RetryPolicies string `envconfig:"RETRY_POLICIES" desc:"JSON: for a job type, or * for all types, the maxRetryCount, retryPolicy and timeoutMs of jobs whose request has none, such as {\"*\": {\"maxRetryCount\": 5}, \"EMAIL\": {\"timeoutMs\": 60000}}"`

	Callbacks webhook.CallbackConfig `ignored:"true"` // parts of their own
	Webhook   webhook.Config         `ignored:"true"`
	Limits    edge.LimitsConfig      `ignored:"true"`
	Sealing   sealing.Config         `ignored:"true"`
	OIDC      access.OIDCConfig      `ignored:"true"`
	Pull      PullConfig             `ignored:"true"`

	// Broker asks whether what events are said to can be reached; for the health page only.
	Broker func(context.Context) error `ignored:"true"`
	// Redrive puts a rejected record on its topic again.
	Redrive funchost.Redrive `ignored:"true"`
	// Lags reads how far functions lag behind their topics; nil: events go through a sink.
	Lags funchost.Lags `ignored:"true"`
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any {
	return []any{c, &c.Callbacks, &c.Webhook, &c.Limits, &c.Sealing, &c.OIDC, &c.Pull}
}

// Function serves HTTP and says what it has accepted.
type Function struct {
	cfg      Config
	store    stores
	rules    jobspec.Rules
	defaults jobspec.TypeDefaults
	singles  *coalesce.Coalescer
	ordered  *coalesce.Coalescer // those with an ordering key: waiting for a key's lock they hold up only each other
	payloads *payloads
	outgoing *publishbuffer.Buffer
	endings  *endings
	done     *endings      // of operations
	hub      *hub          // of streams and held answers
	served   chan struct{} // closed when the last request has been answered
	grumble  sometimes
	broker   brokerAnswer
	lags     *lags
	inbound  *inbound
	unserved telemetry.Trouble // of requests that are answered 503; ready sees it end
	entering telemetry.Trouble
	http     http.Handler
	gate     *access.Gate  // nil: no authentication is needed
	settled  chan struct{} // closed when the key of the setting is kept, or is known to let nobody in, or there is none
	limits   *edge.Limits
	pull     *pullers
	page     dashboard

	callbackKeys *webhook.CallbackKeys
	ends, calls  *webhook.Outgoing // to show an owner its keys
	sealer       *sealing.Sealer
}

// New makes the function on the API's database. An error begins with the setting that is wrong.
func New(cfg Config, db *apidb.Store) (*Function, error) {
	if cfg.Auth == "" {
		cfg.Auth = AuthOn
	}
	if cfg.Auth != AuthOn && cfg.Auth != AuthOff {
		return nil, fmt.Errorf("AUTH: %q is neither on nor off", cfg.Auth)
	}
	rules := jobspec.Rules{Queues: cfg.Queues, JobTypes: cfg.JobTypes, CheckURL: outbound.CheckURL}
	if err := rules.Check(); err != nil {
		return nil, err
	}
	defaults, err := rules.Defaults(cfg.RetryPolicies)
	if err != nil {
		return nil, err
	}
	if err := edge.CheckTraceURL(cfg.TraceURL); err != nil {
		return nil, fmt.Errorf("TRACE_URL: %w", err)
	}
	keys, ends, calls, err := webhookKeys(cfg)
	if err != nil {
		return nil, err
	}
	limits, err := edge.NewLimits(cfg.Limits)
	if err != nil {
		return nil, err
	}
	pull, err := newPullers(cfg.Pull, keys)
	if err != nil {
		return nil, err
	}
	sealer, err := sealing.New(cfg.Sealing)
	if err != nil {
		return nil, err
	}
	inbound, err := newInbound(cfg.HooksFile)
	if err != nil {
		return nil, err
	}
	store := newStores(db)
	hub := newHub(store)
	f := &Function{
		callbackKeys: keys,
		ends:         ends,
		calls:        calls,
		limits:       limits,
		pull:         pull,
		sealer:       sealer,

		cfg:      cfg,
		store:    store,
		rules:    rules,
		defaults: defaults,
		singles:  &coalesce.Coalescer{Insert: store.jobs.InsertJobs, Patience: edge.RequestPatience},
		ordered:  &coalesce.Coalescer{Insert: store.jobs.InsertJobs, Patience: edge.RequestPatience},
		payloads: newPayloads(store.workers.AdvertisedTypes),
		outgoing: publishbuffer.New(),
		endings:  newEndings(store.jobs.Ended, hub.isTelling),
		done:     newEndings(store.operations.EndedOperations, never),
		hub:      hub,
		served:   make(chan struct{}),
		unserved: telemetry.Trouble{What: "serve requests", Quiet: 5 * time.Second},
		entering: telemetry.Trouble{What: "enter the count of accepted jobs"},
		settled:  make(chan struct{}),
		broker:   brokerAnswer{asks: cfg.Broker},
		lags:     newLags(cfg.Lags),
		inbound:  inbound,
	}
	hub.ends, hub.show, hub.lines, hub.count = f.endings, f.showStreamed, f.showLines, f.showStats
	store.operations.Limit(cfg.Limits.OperationLimit)
	store.schedules.Limit(cfg.Limits.ScheduleLimit)
	if err := f.openGate(); err != nil {
		return nil, err
	}
	if f.page, err = builtDashboard(); err != nil {
		return nil, err
	}
	f.page.connect = f.loginOrigins
	f.http, err = edge.Compress(f.Handler(), streamPath)
	return f, err
}

func webhookKeys(cfg Config) (keys *webhook.CallbackKeys, ends, calls *webhook.Outgoing, err error) {
	if keys, err = webhook.NewCallbackKeys(cfg.Callbacks.Secrets.Reveal()); err != nil {
		return nil, nil, nil, err
	}
	if ends, err = webhook.NewOutgoing(cfg.Webhook, webhook.End); err != nil {
		return nil, nil, nil, err
	}
	calls, err = webhook.NewOutgoing(cfg.Webhook, webhook.Call)
	return keys, ends, calls, err
}

// Host is how the function is hosted.
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

// Run says what was accepted and wakes those who wait for an end. When ctx ends it lets the waiting
// go at once, and goes on saying until HTTP has ended, too: no request is left that could add to it.
func (f *Function) Run(ctx context.Context, say funchost.Publish) error {
	if f.callbackKeys.Empty() {
		telemetry.Logger(ctx).Warn("no callback is accepted: CALLBACK_SECRETS is not set")
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var all errgroup.Group
	all.Go(func() error { f.endings.run(ctx); return nil })
	all.Go(func() error { f.done.run(ctx); return nil })
	all.Go(func() error { f.hub.run(ctx); return nil })
	all.Go(func() error { f.hub.tellOn(serving); return nil })
	all.Go(func() error { funchost.Listen(serving, make(chan struct{}, 1), f.store.FollowWatchers); return nil })
	all.Go(func() error { f.outgoing.Run(serving, say); return nil })
	all.Go(func() error { f.enterAccepted(serving); return nil })
	if f.gate != nil {
		all.Go(func() error { f.gate.Keys.Run(serving); return nil })
		all.Go(func() error { f.keepBootstrapKey(ctx); return nil })
	}
	<-ctx.Done()
	<-f.served
	f.pull.close()
	end()
	return all.Wait()
}
