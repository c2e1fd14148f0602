// Package cron is the clock of schedules, batches and alerts: it creates a job for each due tick, or records why it did
// not. It also ends the batches whose jobs have ended, and creates the jobs that follow them, and those that send the
// notices of alerts. It wakes the jobs whose handlers wait for something that has come.
package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/queuestore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Name is the function's name.
const Name = "cron"

const (
	// idle is the longest sleep of the clock.
	idle = 10 * time.Second
	// alertPatience bounds a look at the alerts.
	alertPatience = 5 * time.Second
	// tidyEvery is how often old ticks are dropped, and schedules that were sealed with a former key are sealed anew.
	tidyEvery = 10 * time.Minute
	// sayTry bounds the only attempt to publish a created job.
	sayTry = 5 * time.Second
	// pending bounds the passes whose events wait to be published, and pendingBytes their data.
	pending      = 100
	pendingBytes = 64 << 20

	maxRate = 1e9
)

// Config has the installation's limits, which the gateway has too, and settings of the host.
type Config struct {
	Queues []string `ignored:"true"` // that a job may name

	RetryPolicies string `envconfig:"RETRY_POLICIES" desc:"JSON: for a job type, or * for all types, the maxRetryCount, retryPolicy and timeoutMs of jobs whose request has none, such as {\"*\": {\"maxRetryCount\": 5}, \"EMAIL\": {\"timeoutMs\": 60000}}"`

	RateLimitJobs float64 `envconfig:"RATE_LIMIT_JOBS" desc:"jobs a second that the schedules of each owner may make; 0: unlimited"`

	Sealing sealing.Config `ignored:"true"` // read as a separate part
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any { return []any{c, &c.Sealing} }

// Function ticks when a schedule is due.
type Function struct {
	store  stores
	rules  schedulestore.Rules
	wake   chan struct{}
	events chan []jobevent.Item

	mu    sync.Mutex
	ended bool // Run has ended, and publishes no further events
	bytes int  // of the events that wait to be published or are being published

	entering, handing, publishing, ending, waking, alerting telemetry.Trouble

	alertsAt time.Time // when to look at alerts next

	tidyAt time.Time // when to tidy up, and after which schedule
	tidied uuid.UUID
}

// New returns the function on the API's database. An error begins with the setting's name.
func New(cfg Config, db *apidb.Store) (*Function, error) {
	rules := jobspec.Rules{Queues: cfg.Queues, JobTypes: []string{jobspec.AnyType}, CheckURL: outbound.CheckURL}
	if err := rules.Check(); err != nil {
		return nil, err
	}
	defaults, err := jobspec.ParseTypeDefaults(cfg.RetryPolicies)
	if err != nil {
		return nil, err
	}
	if !(cfg.RateLimitJobs >= 0 && cfg.RateLimitJobs <= maxRate) { // NaN is neither
		return nil, fmt.Errorf("RATE_LIMIT_JOBS: %v is no number of them a second", cfg.RateLimitJobs)
	}
	sealer, err := sealing.New(cfg.Sealing)
	if err != nil {
		return nil, err
	}
	return &Function{
		store: newStores(db), wake: make(chan struct{}, 1), events: make(chan []jobevent.Item, pending),
		rules: schedulestore.Rules{
			Rules: rules, Defaults: defaults, Sealer: sealer, RateLimitJobs: cfg.RateLimitJobs,
		},
		entering:   telemetry.Trouble{What: "enter the count of accepted jobs"},
		handing:    telemetry.Trouble{What: "keep new jobs until they are published; reconcile publishes the rest"},
		publishing: telemetry.Trouble{What: "publish new jobs; reconcile publishes the rest"},
		ending:     telemetry.Trouble{What: "end batches; the next sweep tries again"},
		waking:     telemetry.Trouble{What: "wake jobs that wait; the next look tries again"},
		alerting:   telemetry.Trouble{What: "look at alerts; the next pass tries again"},
	}, nil
}

// Host is how the function is hosted.
func (f *Function) Host() funchost.Function {
	return funchost.Function{
		Name: Name, Tick: f.Tick, Wake: f.wake, Ready: f.store.Ping, Pool: f.store.Connections, Run: f.Run,
	}
}

// Tick is one pass of the clock. While Run publishes, Tick does not publish itself: an unavailable broker must not stop
// the clock. Projection republishes events that Run cannot publish.
func (f *Function) Tick(ctx context.Context) ([]jobevent.Item, time.Duration, error) {
	rules := f.rules
	rules.KeepTrace = telemetry.TracingOf(ctx).KeepsNew
	queues, err := f.store.queues.Known(ctx, queuestore.UnknownAge)
	if err != nil {
		return nil, 0, err
	}
	rules.Created = queues.Created
	fired, next, err := f.store.schedules.Fire(ctx, rules, idle)
	if err != nil {
		return nil, 0, err
	}
	looked := time.Now()
	for _, failed := range fired.Failed {
		telemetry.Logger(ctx).ErrorContext(ctx, "cannot fire a schedule, tries again", "schedule", failed.ScheduleID,
			"error", failed.Err, "after", failed.Again.String())
	}
	swept, sweepsIn, err := f.store.batches.Sweep(ctx, rules, idle)
	if err != nil {
		swept.Failed, sweepsIn = append(swept.Failed, err), idle // the jobs that were fired have to be published
	}
	f.ending.Note(ctx, errors.Join(swept.Failed...))
	waits, looksIn, err := f.store.waits.Look(ctx, idle)
	if err != nil {
		waits.Failed, looksIn = append(waits.Failed, err), idle
	}
	f.waking.Note(ctx, errors.Join(waits.Failed...))
	f.entering.Note(ctx, f.store.jobs.EnterAccepted(ctx)) // published at once, so that nothing is left at the end
	commands := slices.Concat(fired.Cancels, waits.Commands)
	events, err := eventsOf(ctx, fired, swept.Jobs, commands)
	if err != nil {
		return nil, 0, err
	}
	events = f.handOver(ctx, events)
	notices, alertsIn, err := f.alert(ctx)
	if err != nil {
		return nil, 0, err
	}
	events = append(events, f.handOver(ctx, notices)...)
	if err := f.tidy(ctx); err != nil {
		return nil, 0, err
	}
	return events, max(0, min(next, sweepsIn, looksIn, alertsIn)-time.Since(looked)), nil
}

// alert looks at the alerts if that is due, and returns the jobs of their notices. Neither its failure nor the size of
// what it counts holds up schedules: it comes after them, and has alertPatience.
func (f *Function) alert(ctx context.Context) (notices []jobevent.Item, next time.Duration, err error) {
	if next = time.Until(f.alertsAt); next > 0 {
		return nil, next, nil
	}
	looking, cancel := context.WithTimeout(ctx, alertPatience)
	defer cancel()
	rules := alertstore.Rules{Queues: f.rules.Queues, Sealer: f.rules.Sealer, KeepTrace: telemetry.TracingOf(ctx).KeepsNew}
	done, next, err := f.store.alerts.Evaluate(looking, rules)
	if err != nil {
		next = idle
	}
	f.alerting.Note(ctx, errors.Join(append(done.Failed, err)...))
	f.alertsAt = time.Now().Add(next)
	for _, job := range done.Jobs {
		if notices, err = created(ctx, notices, job, "send notice"); err != nil {
			return nil, next, err
		}
	}
	return notices, next, nil
}

// handOver passes events to Run. It returns them if Run has ended, because a ping may still tick during the drain.
func (f *Function) handOver(ctx context.Context, events []jobevent.Item) []jobevent.Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || len(events) == 0 {
		return events
	}
	size := sizeOf(events)
	if len(f.events) == pending || f.bytes > 0 && f.bytes+size > pendingBytes {
		f.handing.Note(ctx, errNoRoom, "events", len(events))
		return nil
	}
	f.handing.Note(ctx, nil)
	f.bytes += size
	f.events <- events // has room, and only this goroutine fills it
	return nil
}

var errNoRoom = errors.New("there is no room")

func sizeOf(events []jobevent.Item) (bytes int) {
	for i := range events {
		bytes += events[i].Size()
	}
	return bytes
}

func eventsOf(
	ctx context.Context, fired schedulestore.Fired, following []jobevent.Created, commands []commandstore.Command,
) (events []jobevent.Item, err error) {
	for _, job := range fired.Jobs {
		if events, err = created(ctx, events, job, "fire schedule"); err != nil {
			return nil, err
		}
	}
	for _, job := range following {
		if events, err = created(ctx, events, job, "end batch"); err != nil {
			return nil, err
		}
	}
	for _, command := range commands {
		e, err := apievent.Command(command)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// created appends the event of a new job.
func created(ctx context.Context, to []jobevent.Item, job jobevent.Created, span string) ([]jobevent.Item, error) {
	e, err := apievent.Created(job)
	if err != nil {
		return to, err
	}
	telemetry.SetRoot(ctx, &e, span)
	return append(to, e), nil
}

// tidy deletes old ticks, and seals some of the schedules anew that were sealed with a former key.
func (f *Function) tidy(ctx context.Context) error {
	if time.Now().Before(f.tidyAt) {
		return nil
	}
	last, err := f.store.schedules.DeleteOldTicks(ctx, f.tidied)
	if err != nil {
		return err
	}
	n, err := f.store.schedules.Seal(ctx, f.rules.Sealer, f.tidied, last)
	if err != nil {
		telemetry.Logger(ctx).WarnContext(ctx, "cannot seal schedules with the key in use, tries again", "error", err)
	}
	if n > 0 {
		telemetry.Logger(ctx).InfoContext(ctx, "has sealed schedules with the key in use", "schedules", n)
	}
	if f.tidied = last; last == uuid.Nil {
		f.tidyAt = time.Now().Add(tidyEvery)
	}
	return nil
}

// Run publishes the jobs of ticks, and lets the database shorten the clock's sleep.
func (f *Function) Run(ctx context.Context, publish funchost.Publish) error {
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		funchost.Listen(ctx, f.wake, f.store.schedules.Listen)
	}()
	for {
		select {
		case events := <-f.events:
			f.try(ctx, publish, events)
			f.mu.Lock()
			f.bytes -= sizeOf(events)
			f.mu.Unlock()
			continue
		case <-ctx.Done():
		}
		<-listening
		if left := f.end(); len(left) > 0 {
			f.try(ctx, publish, left)
		}
		return nil
	}
}

// end returns the events that are left to publish. From then on ticks publish their events themselves.
func (f *Function) end() (left []jobevent.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for {
		select {
		case events := <-f.events:
			left = append(left, events...)
		default:
			return left
		}
	}
}

func (f *Function) try(ctx context.Context, publish funchost.Publish, events []jobevent.Item) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTry)
	defer cancel()
	f.publishing.Note(ctx, publish(ctx, events), "events", len(events))
}
