package pull

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/publicurl"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/webhook"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Name is the function's name.
const Name = "pull"

// Config has the settings of an operator and of the host.
type Config struct {
	Slots       int           `envconfig:"PULL_SLOTS" default:"1000" desc:"attempts that the pull workers of one pull function may have at once"`
	Grace       time.Duration `envconfig:"GRACE" default:"25s" desc:"how long pull workers may go on settling when the function stops"`
	CallbackURL string        `envconfig:"CALLBACK_URL" desc:"public URL of POST /api/jobs/callback, for attempts that pull workers hand to outside systems"`

	RetainAttempts time.Duration `envconfig:"RETAIN_ATTEMPTS" default:"192h" desc:"how long the outcome of an attempt is kept at least, longer than topics keep records; 0: forever"`

	RetainCheckpoints time.Duration `envconfig:"RETAIN_CHECKPOINTS" default:"1440h" desc:"how long the checkpoint of a job that does not complete is kept after it was saved, at least 24h; 0: forever"`

	Public    publicurl.Config       `ignored:"true"` // parts of their own
	Pull      runjob.PullQueues      `ignored:"true"`
	Follow    runjob.FollowQueues    `ignored:"true"`
	Callbacks webhook.CallbackConfig `ignored:"true"`
	Sealing   sealing.Config         `ignored:"true"`

	Within  time.Duration     `ignored:"true"` // SHUTDOWN_GRACE, after which the process ends; 0: unknown
	Queues  []string          `ignored:"true"`
	Kafka   kafkaevent.Config `ignored:"true"`
	Version string            `ignored:"true"` // of this build
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any {
	return []any{c, &c.Public, &c.Pull, &c.Follow, &c.Callbacks, &c.Sealing}
}

// timing has periods that are not settings, for tests to change.
type timing struct {
	lease    time.Duration // without a heartbeat: the attempt is lost
	unasked  time.Duration // for a pull worker to ask again for an attempt that was claimed for another one
	again    time.Duration // between looks whether an attempt that was kept back may be handed out
	gather   time.Duration // for further attempts of a claim that has one
	present  time.Duration // how long a pull worker counts as there after its last claim
	patience time.Duration // for a pull worker to settle a cancelled attempt
	settle   time.Duration // for the store, before a settle is answered
	forget   time.Duration // at least so long a settle that is sent again gets the same answer
}

var defaultTiming = timing{
	lease: 15 * time.Second, unasked: 5 * time.Second, again: 100 * time.Millisecond,
	gather: 10 * time.Millisecond, present: 3 * time.Second,
	patience: 5 * time.Second, settle: 10 * time.Second, forget: 2 * time.Minute,
}

// Function is one instance.
type Function struct {
	cfg     Config
	timing  timing
	worker  *runjob.Function
	fresh   func() bool // of the worker; tests set another
	keys    *webhook.CallbackKeys
	metrics *metrics

	stopping chan struct{} // closed: it hands out no further attempts

	mu      sync.Mutex
	claims  map[string]*list.List // open claims that have room, by job type, the oldest first
	workers map[workerKey]*pullWorker
	places  map[workerdb.Key]*place // of attempts that are being claimed
	unasked []*inHand               // claimed, and their claim is gone
	tokens  map[string]*inHand      // until the outcome is in the store
	ended   [2]map[string]*inHand   // settled lately, by token: since turnedAt, and before
	turned  time.Time
}

// New returns an instance on the worker's database. Metrics go to registerer.
func New(cfg Config, store *workerdb.Store, registerer prometheus.Registerer) (*Function, error) {
	if cfg.Slots < 1 || cfg.Slots > 10_000 {
		return nil, fmt.Errorf("PULL_SLOTS: %d is not within 1 and 10000", cfg.Slots)
	}
	var err error
	if cfg.CallbackURL, err = cfg.Public.Callback(cfg.CallbackURL); err != nil {
		return nil, err
	}
	if u, err := url.Parse(cfg.CallbackURL); cfg.CallbackURL != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("CALLBACK_URL: %q is not an http or https URL", cfg.CallbackURL)
	}
	keys, err := webhook.NewCallbackKeys(cfg.Callbacks.Secrets.Reveal())
	if err != nil {
		return nil, err
	}
	if keys.Empty() {
		return nil, errors.New("CALLBACK_SECRETS: is not set; the gateway is known by a secret that is made of it")
	}
	f := &Function{
		cfg: cfg, timing: defaultTiming, keys: keys, stopping: make(chan struct{}),
		claims: map[string]*list.List{}, workers: map[workerKey]*pullWorker{}, places: map[workerdb.Key]*place{},
		tokens: map[string]*inHand{}, ended: [2]map[string]*inHand{{}, {}}, turned: time.Now(),
	}
	registry := handlers.NewRegistry()
	registry.RegisterOthers(f.run)
	if f.worker, err = runjob.New(runjob.Config{
		PoolSize: cfg.Slots, Grace: cfg.Grace, RetainAttempts: cfg.RetainAttempts,
		RetainCheckpoints: cfg.RetainCheckpoints, Sealing: cfg.Sealing,
		Within: cfg.Within, Queues: cfg.Pull.Of(cfg.Queues), Follow: cfg.Follow, Kafka: cfg.Kafka,
		Version: cfg.Version, As: Name,
		Demand: &runjob.Demand{Slots: f.slots, List: f.demands, Wants: f.wants, Forget: f.forget, Serves: f.serves},
	}, store, registry, registerer); err != nil {
		return nil, err
	}
	f.fresh = f.worker.Fresh
	f.metrics, err = newMetrics(f, registerer)
	return f, err
}

// Host is how the function is hosted. Its HTTP is served until the last attempt is settled.
func (f *Function) Host() funchost.Function {
	host := f.worker.Host()
	host.HTTP, host.HTTPLast = f.handler(), true
	host.Run = func(ctx context.Context, publish funchost.Publish) error {
		stop := context.AfterFunc(ctx, func() { close(f.stopping) })
		defer stop()
		return f.worker.Run(ctx, publish)
	}
	return host
}
