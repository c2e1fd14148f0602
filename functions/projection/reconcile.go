package projection

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const (
	// every is the time between two passes.
	every = 10 * time.Second
	// most bounds what a pass publishes of each kind, so that it does not overload a scheduler that is only slow.
	most = 10_000
	// leastAge is the age at which a job without a status is published again. Behind a Broker each status is a request,
	// and those of a burst can take most of a minute: publishing its jobs again would double the load just then.
	leastAge       = 10 * time.Second
	leastAgeBroker = 40 * time.Second
	// silence is the age of a status at which the scheduler is asked about a job in flight.
	silence = time.Minute
	// round is the least duration of one walk over all waiting jobs.
	round = time.Minute
)

// reconcile has the position of the passes, in memory only: after a start everything that is unconfirmed and older than
// the least age is published once.
type reconcile struct {
	jobs, commands, controls, inFlight walk
	callbacks                          walk
	waiting                            walk // its since is the instant at which the round began
	began                              time.Time
	left                               int // how many jobs this pass may still publish
}

// walk visits rows in the order of their ids, and selects those that became due after since and not after until. When
// it has visited all, the next walk begins with this walk's until as its since.
type walk struct {
	since, until time.Time
	after        uuid.UUID
	under        bool // the walk has begun and not ended
}

// page returns the walk's next page.
func (w *walk) page(now time.Time, limit int) apidb.Page {
	if !w.under {
		w.until, w.after, w.under = now, uuid.Nil, true
	}
	return apidb.Page{After: w.after, Since: w.since, Until: w.until, Limit: limit}
}

// went records the last id of a page, and whether there may be more rows.
func (w *walk) went(last uuid.UUID, more bool) {
	w.after, w.under = last, more
	if !more {
		w.since = w.until
	}
}

// Tick does what is due: a pass of reconcile, a step of the walk over old rows, and a step of the statistics.
func (f *Function) Tick(ctx context.Context) (events []jobevent.Item, next time.Duration, err error) {
	now, err := f.store.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	if events, next, err = f.pass(ctx, now); err != nil {
		return nil, 0, err
	}
	return events, min(next, f.expire(ctx, now), f.count(ctx, now)), nil
}

// pass visits everything that the scheduler has not confirmed, or as much as fits into memory: then the next pass is
// due at once.
func (f *Function) pass(ctx context.Context, now time.Time) (events []jobevent.Item, next time.Duration, err error) {
	r := f.reconcile // a copy, because a failed pass is repeated
	first := now.Sub(r.began) >= every || now.Before(r.began)
	if !first && (!r.jobs.under || r.left == 0) {
		return nil, every - now.Sub(r.began), nil
	}
	if first {
		r.began, r.left = now, most
	}
	found, err := f.unconfirmedJobs(ctx, &r, now)
	if err != nil {
		return nil, 0, err
	}
	events = append(events, found...)
	if first {
		if found, err = f.others(ctx, &r, now); err != nil {
			return nil, 0, err
		}
		events = append(events, found...)
	}
	f.reconcile = r
	if r.jobs.under && r.left > 0 {
		return events, 0, nil
	}
	return events, max(every-now.Sub(r.began), 0), nil
}

func (f *Function) unconfirmedJobs(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.Item, error) {
	if r.left == 0 {
		return nil, nil
	}
	jobs, err := f.store.statuses.UnconfirmedJobs(ctx, r.jobs.page(now, r.left), f.leastAge)
	if err != nil {
		return nil, err
	}
	r.left -= len(jobs)
	r.jobs.went(lastID(jobs, func(j jobevent.Created) uuid.UUID { return j.JobID }), len(jobs) > 0) // bytes bound it, too
	return eventsOf(jobs, apievent.Created)
}

// others returns the events that are published at most once in a pass: commands, callbacks, controls, and reports about
// jobs.
func (f *Function) others(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.Item, error) {
	commands, err := f.store.statuses.UnconfirmedCommands(ctx, r.commands.page(now, most))
	if err != nil {
		return nil, err
	}
	r.commands.went(lastID(commands, func(c commandstore.Command) uuid.UUID { return c.JobID }), len(commands) == most)
	callbacks, err := f.unconfirmedCallbacks(ctx, r, now)
	if err != nil {
		return nil, err
	}
	controls, err := f.unconfirmedControls(ctx, r, now)
	if err != nil {
		return nil, err
	}
	least := silence
	if f.newBroker && r.inFlight.since.IsZero() {
		least = 0
	}
	inFlight, err := f.store.statuses.JobsInFlight(ctx, r.inFlight.page(now, most), least)
	if err != nil {
		return nil, err
	}
	r.inFlight.went(lastID(inFlight, idOfReport), len(inFlight) == most)
	waiting, err := f.waitingJobs(ctx, r, now)
	if err != nil {
		return nil, err
	}
	if err := f.store.workers.DeleteOld(ctx); err != nil {
		return nil, err
	}
	events, err := eventsOf(commands, apievent.Command)
	if err != nil {
		return nil, err
	}
	reports, err := reportEvents(append(inFlight, waiting...))
	return slices.Concat(events, callbacks, controls, reports), err
}

// unconfirmedCallbacks also marks callbacks as confirmed whose attempt has ended.
func (f *Function) unconfirmedCallbacks(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.Item, error) {
	if err := f.store.callbacks.Answer(ctx); err != nil {
		return nil, err
	}
	callbacks, more, err := f.store.callbacks.Unconfirmed(ctx, r.callbacks.page(now, most))
	if err != nil {
		return nil, err
	}
	r.callbacks.went(lastID(callbacks, func(c callbackstore.Callback) uuid.UUID { return c.JobID }), more)
	return eventsOf(callbacks, apievent.Callback)
}

// unconfirmedControls returns all controls whose age is due: they are few.
func (f *Function) unconfirmedControls(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.Item, error) {
	page := r.controls.page(now, 0)
	controls, err := f.store.controls.UnconfirmedControls(ctx, page.Since, page.Until)
	if err != nil {
		return nil, err
	}
	r.controls.went(uuid.Nil, false)
	return eventsOf(controls, apievent.Control)
}

// waitingJobs returns the next page of waiting jobs, in the order of their ids, and begins again after the last one.
func (f *Function) waitingJobs(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.ReportJob, error) {
	w := &r.waiting
	if !w.under && now.Sub(w.since) < round {
		return nil, nil
	}
	if !w.under {
		w.since, w.after, w.under = now, uuid.Nil, true
	}
	jobs, err := f.store.statuses.JobsWaiting(ctx, w.after, most)
	if err != nil {
		return nil, err
	}
	w.after, w.under = lastID(jobs, idOfReport), len(jobs) == most
	return jobs, nil
}

func idOfReport(j jobevent.ReportJob) uuid.UUID { return j.JobID }

func lastID[T any](items []T, id func(T) uuid.UUID) uuid.UUID {
	if len(items) == 0 {
		return uuid.Nil
	}
	return id(items[len(items)-1])
}

// reportEvents returns report commands about jobs. Each is a new event: the scheduler answers it with the current
// state.
func reportEvents(jobs []jobevent.ReportJob) ([]jobevent.Item, error) {
	var events []jobevent.Item
	for part := range slices.Chunk(jobs, jobevent.MaxReportJobs) {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make report id: %w", err)
		}
		e, err := jobevent.New(jobevent.TypeCommand,
			jobevent.Meta{Function: Name, ID: "report." + id.String(), Key: "report"},
			jobevent.Command{Command: jobevent.CommandReport, Reports: part})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func eventsOf[T any](items []T, make func(T) (jobevent.Item, error)) ([]jobevent.Item, error) {
	var events []jobevent.Item
	for _, item := range items {
		e, err := make(item)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
