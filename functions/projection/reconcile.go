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
	// most bounds what a pass publishes of each kind, so that a scheduler that is only slow does not drown in it.
	most = 10_000
	// round is how long one walk over all waiting jobs takes at least.
	round = time.Minute
)

// reconcile is the position of the passes, in memory only: after a start everything that is unconfirmed and older than
// 10 s is published once.
type reconcile struct {
	jobs, commands, controls, inFlight walk
	callbacks                          walk
	waiting                            walk // since: when the round began
	began                              time.Time
	left                               int // of this pass's jobs
}

// walk goes over rows in the order of their ids, and chooses by age those that became due after since and by until.
// When it has seen them all, the next walk begins at the instant at which this one ended.
type walk struct {
	since, until time.Time
	after        uuid.UUID
	under        bool // it is under way
}

// page is the walk's next piece.
func (w *walk) page(now time.Time, limit int) apidb.Page {
	if !w.under {
		w.until, w.after, w.under = now, uuid.Nil, true
	}
	return apidb.Page{After: w.after, Since: w.since, Until: w.until, Limit: limit}
}

// went records how far a piece of the walk reached, and whether there may be more.
func (w *walk) went(last uuid.UUID, more bool) {
	w.after, w.under = last, more
	if !more {
		w.since = w.until
	}
}

// Tick is a pass of reconcile, where one is due, a piece of the walk over old jobs and one of the statistics.
func (f *Function) Tick(ctx context.Context) (say []jobevent.Item, next time.Duration, err error) {
	now, err := f.store.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	if say, next, err = f.pass(ctx, now); err != nil {
		return nil, 0, err
	}
	return say, min(next, f.expire(ctx, now), f.count(ctx, now)), nil
}

// pass goes over all that the API waits for, or as much as fits into memory. In that case the next pass is due at once.
func (f *Function) pass(ctx context.Context, now time.Time) (say []jobevent.Item, next time.Duration, err error) {
	r := f.reconcile // a copy: a pass that fails is done again
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
	say = append(say, found...)
	if first {
		if found, err = f.others(ctx, &r, now); err != nil {
			return nil, 0, err
		}
		say = append(say, found...)
	}
	f.reconcile = r
	if r.jobs.under && r.left > 0 {
		return say, 0, nil
	}
	return say, max(every-now.Sub(r.began), 0), nil
}

func (f *Function) unconfirmedJobs(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.Item, error) {
	if r.left == 0 {
		return nil, nil
	}
	jobs, err := f.store.statuses.UnconfirmedJobs(ctx, r.jobs.page(now, r.left))
	if err != nil {
		return nil, err
	}
	r.left -= len(jobs)
	r.jobs.went(lastID(jobs, func(j jobevent.Created) uuid.UUID { return j.JobID }), len(jobs) > 0) // bytes bound it too
	return eventsOf(jobs, apievent.Created)
}

// others is what is published at most once a pass: commands, callbacks, controls, and reports about jobs.
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
	inFlight, err := f.store.statuses.JobsInFlight(ctx, r.inFlight.page(now, most))
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
	say, err := eventsOf(commands, apievent.Command)
	if err != nil {
		return nil, err
	}
	reports, err := reportEvents(append(inFlight, waiting...))
	return slices.Concat(say, callbacks, controls, reports), err
}

// unconfirmedCallbacks also ends the wait of those that have come to something.
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

// unconfirmedControls are few, so a pass publishes all that have come of age.
func (f *Function) unconfirmedControls(ctx context.Context, r *reconcile, now time.Time) ([]jobevent.Item, error) {
	page := r.controls.page(now, 0)
	controls, err := f.store.controls.UnconfirmedControls(ctx, page.Since, page.Until)
	if err != nil {
		return nil, err
	}
	r.controls.went(uuid.Nil, false)
	return eventsOf(controls, apievent.Control)
}

// waitingJobs walks over the jobs that wait, by ids alone, and begins again at the end.
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

// reportEvents asks the scheduler about jobs. Each question is a new event: it is answered by the state
// at the time.
func reportEvents(jobs []jobevent.ReportJob) ([]jobevent.Item, error) {
	var say []jobevent.Item
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
		say = append(say, e)
	}
	return say, nil
}

func eventsOf[T any](items []T, make func(T) (jobevent.Item, error)) ([]jobevent.Item, error) {
	var say []jobevent.Item
	for _, item := range items {
		e, err := make(item)
		if err != nil {
			return nil, err
		}
		say = append(say, e)
	}
	return say, nil
}
