// Package notify delivers the ends of jobs to the jobs' callback URLs, each at least once. A slow or unavailable
// receiver does not delay others.
package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// Name is the function's name.
const Name = "notify"

const (
	// every is how often it looks for due deliveries without a notification while there are some, and idle how often while
	// there are none.
	every = time.Second
	idle  = 10 * time.Second
	// breath is the least time between two passes, because each try that ends wakes the function.
	breath = 10 * time.Millisecond
	// tryMost is the longest time that a receiver may take to answer.
	tryMost = 30 * time.Second
	// lease is how long a delivery belongs to one process: long enough for a try and for storing its result. If the
	// process is killed, the delivery is due again after its lease.
	lease = 90 * time.Second
	// forgetEvery is how often old deliveries are deleted, and forgetMost how many at a time.
	forgetEvery = 10 * time.Minute
	forgetMost  = 1_000
	// lastWord is the part of the grace period that is kept for storing the results of the last tries.
	lastWord = 5 * time.Second
)

// Config has how long deliveries are kept, how they are signed and which targets are allowed.
type Config struct {
	Retain time.Duration `envconfig:"RETAIN_DELIVERIES" default:"720h" desc:"how long deliveries to callbackUrls are kept after they finished; 0: forever"`

	Webhook  webhook.Config  `ignored:"true"` // read separately, with its own names
	Outbound outbound.Config `ignored:"true"`
	Sealing  sealing.Config  `ignored:"true"`

	Grace time.Duration `ignored:"true"` // of the host
}

// Parts are the structs into which the environment is read.
func (c *Config) Parts() []any { return []any{c, &c.Webhook, &c.Outbound, &c.Sealing} }

// Function ticks while there is something to deliver.
type Function struct {
	store  stores
	client *outbound.Client
	signer *webhook.Outgoing
	sealer *sealing.Sealer
	keep   time.Duration
	grace  time.Duration
	wake   chan struct{}
	delays []time.Duration // between tries
	tryFor time.Duration

	looked time.Time // when it last looked for due deliveries
	lap    lap
	forget time.Time // when it deletes old deliveries next

	mu      sync.Mutex
	stopped bool
	hosts   hosts
	writing telemetry.Trouble
	trying  sync.WaitGroup
	cut     context.Context // ends when the tries under way must end
	cutOff  func()
}

// New returns the function on the API's database. An error begins with the setting's name.
func New(cfg Config, db *apidb.Store) (*Function, error) {
	if cfg.Retain < 0 {
		return nil, fmt.Errorf("RETAIN_DELIVERIES: %s is negative", cfg.Retain)
	}
	if len(cfg.Webhook.Secrets) == 0 {
		return nil, errors.New("WEBHOOK_SECRETS: there is none, and what is delivered has to be signed")
	}
	signer, err := webhook.NewOutgoing(cfg.Webhook, webhook.End)
	if err != nil {
		return nil, err
	}
	client, err := outbound.New(cfg.Outbound)
	if err != nil {
		return nil, err
	}
	sealer, err := sealing.New(cfg.Sealing)
	if err != nil {
		return nil, err
	}
	cut, cutOff := context.WithCancel(context.Background())
	return &Function{
		store: newStores(db), client: client, signer: signer, sealer: sealer, keep: cfg.Retain, grace: cfg.Grace,
		wake: make(chan struct{}, 1), delays: delays, tryFor: tryMost, cut: cut, cutOff: cutOff, lap: newLap(),
		writing: telemetry.Trouble{What: "write what came of deliveries"},
	}, nil
}

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Tick: f.Tick, Wake: f.wake, Ready: f.store.Ping, Pool: f.store.Connections, Run: f.Run, Silent: true,
	}
}

// Run lets the database wake the clock. At the stop it waits for the tries under way; those that have not ended when
// the grace period is nearly over are due again at once.
func (f *Function) Run(ctx context.Context, _ funchost.Publish) error {
	funchost.Listen(ctx, f.wake, f.store.deliveries.Listen)
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	patience := time.AfterFunc(max(f.grace-lastWord, 0), f.cutOff)
	defer patience.Stop()
	f.trying.Wait()
	f.cutOff()
	f.client.Close()
	return nil
}

// Tick begins as many tries as there is room for. It goes from owner to owner and from host to host, and continues
// there the next time, so that every host has its turn.
func (f *Function) Tick(ctx context.Context) (_ []jobevent.Item, next time.Duration, err error) {
	f.breathe(ctx)
	f.forgetOld(ctx)
	at := f.lap.begin()
	found, nextOwner, err := f.store.deliveries.Turns(ctx, at)
	if err != nil {
		return nil, 0, err
	}
	turns := inTurn(found)
	rooms, seen := f.room(turns)
	if len(rooms) > 0 {
		claimed, err := f.store.deliveries.Claim(ctx, rooms, lease)
		if err != nil {
			return nil, 0, err
		}
		f.start(ctx, claimed)
	}
	switch whole := f.lap.end(found, turns, seen, nextOwner); {
	case len(found) == 0 && at.FromOwner == "":
		next, err = f.untilDue(ctx)
	case whole, seen < len(turns) && !f.hasRoom():
		next = every
	}
	return nil, next, err
}

// untilDue returns how long the function may sleep if nothing is due. A new delivery wakes it.
func (f *Function) untilDue(ctx context.Context) (time.Duration, error) {
	wait, ok, err := f.store.deliveries.Next(ctx)
	if !ok || err != nil {
		return idle, err
	}
	return min(max(wait, 0), idle), nil
}

// room returns how many tries may begin at each place where a delivery is due, and how many places had their turn
// before the room was used up.
func (f *Function) room(turns []deliverystore.DuePlace) (rooms map[deliverystore.Place]int, seen int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, len(turns)
	}
	return f.hosts.rooms(turns, time.Now())
}

func (f *Function) hasRoom() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts.trying.all() < atOnce
}

// start begins the tries, or gives the deliveries back if the function has stopped meanwhile.
func (f *Function) start(ctx context.Context, claimed []deliverystore.Claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range claimed {
		if f.stopped {
			f.release(context.WithoutCancel(ctx), c)
			continue
		}
		f.hosts.begin(c.Place, time.Now())
		f.trying.Go(func() { f.deliver(context.WithoutCancel(ctx), c) })
	}
}

// breathe waits a moment, so that a pass finds more deliveries than the one that has woken the function.
func (f *Function) breathe(ctx context.Context) {
	select {
	case <-time.After(breath - time.Since(f.looked)):
	case <-ctx.Done():
	}
	f.looked = time.Now()
}

// forgetOld deletes old deliveries. Its failure does not hold up the pass.
func (f *Function) forgetOld(ctx context.Context) {
	if f.keep == 0 || time.Now().Before(f.forget) {
		return
	}
	n, err := f.store.deliveries.DeleteOld(ctx, f.keep, forgetMost)
	if err != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "cannot forget old deliveries", "error", err)
	}
	if f.forget = time.Now().Add(forgetEvery); n == forgetMost {
		f.forget = time.Now().Add(every)
	}
}
