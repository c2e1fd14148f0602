// Package fanouts makes the jobs of fan-outs, and ends a fan-out when these jobs have ended.
//
// Why the API makes them: docs/decisions/groups.md#a-fan-out-waits-for-the-api
package fanouts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// lookEvery is the time between two looks while a fan-out has not ended, and idleEvery that while there is none.
	lookEvery = 200 * time.Millisecond
	idleEvery = time.Second
	// pageMost is how many fan-outs one statement looks at, and patience bounds the work on one of them.
	pageMost = 100
	patience = 30 * time.Second
)

// Runner runs in every gateway. Only one gateway at a time works on a fan-out.
type Runner struct {
	Store     *batchstore.Store
	Callbacks *callbackstore.Store
	Commands  *commandstore.Store
	Outgoing  *publishbuffer.Buffer
	Rules     schedulestore.Rules
	Check     func(context.Context) jobtypes.Check
	running   telemetry.Trouble
}

// Run does it until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	r.running.What = "run fan-outs"
	for ctx.Err() == nil {
		live, err := r.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		r.running.Note(ctx, err)
		next := idleEvery
		if live && err == nil {
			next = lookEvery
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

// pass looks at all fan-outs once. An error of one does not keep it from the others.
func (r *Runner) pass(ctx context.Context) (live bool, _ error) {
	var failed []error
	note := func(err error) {
		if err != nil {
			failed = append(failed, err)
		}
	}
	for after, more := uuid.Nil, true; more; {
		var page []batchstore.FanOut
		err := edge.Within(ctx, edge.RequestPatience, func(ctx context.Context) (err error) {
			page, err = r.Store.FanOuts(ctx, after, pageMost)
			return err
		})
		if err != nil {
			return live, errors.Join(append(failed, err)...)
		}
		live, more = live || len(page) > 0, len(page) == pageMost
		for _, fanOut := range page {
			if after = fanOut.ID; fanOut.Due {
				note(edge.Within(ctx, patience, func(ctx context.Context) error { return r.handle(ctx, fanOut) }))
			}
		}
	}
	note(edge.Within(ctx, edge.RequestPatience, r.Store.Orphans))
	return live, errors.Join(failed...)
}

func (r *Runner) handle(ctx context.Context, fanOut batchstore.FanOut) error {
	if fanOut.Expanded {
		return r.end(ctx, fanOut.ID)
	}
	rules := batchstore.ElementRules{Rules: r.Rules, Check: r.Check(ctx)}
	created, err := r.Store.Expand(ctx, rules, fanOut.ID)
	if refused := (*batchstore.RefusedFanOut)(nil); errors.As(err, &refused) {
		return r.report(ctx, apibody.Callback{
			JobID: fanOut.ID, Attempt: refused.Attempt, Status: apibody.CallbackFailed,
			ErrorCode: string(apierror.InvalidFanOut), Message: refused.Why,
		})
	}
	if err != nil {
		return err
	}
	events := make([]jobevent.Item, 0, len(created))
	for _, job := range created {
		e, err := apievent.Created(job)
		if err != nil {
			return err
		}
		telemetry.SetRoot(ctx, &e, "expand fan-out")
		events = append(events, e)
	}
	r.Outgoing.Add(events)
	return nil
}

// end ends a fan-out whose jobs have ended. Jobs that were cancelled have it cancelled, as a batch is.
func (r *Runner) end(ctx context.Context, id uuid.UUID) error {
	end, err := r.Store.End(ctx, r.Rules.Sealer, id)
	switch {
	case err != nil || end == nil:
		return err
	case end.Cancelled:
		return r.cancel(ctx, id)
	case end.Failed != "":
		return r.report(ctx, apibody.Callback{
			JobID: id, Attempt: end.Attempt, Status: apibody.CallbackFailed,
			ErrorCode: string(apierror.ElementFailed), Message: end.Failed,
		})
	}
	return r.report(ctx, apibody.Callback{
		JobID: id, Attempt: end.Attempt, Status: apibody.CallbackCompleted, Output: end.Output,
	})
}

func (r *Runner) cancel(ctx context.Context, id uuid.UUID) error {
	kept, err := r.Commands.KeepCommand(ctx, nil, apidb.Everyone, id, jobevent.CommandCancel, batchstore.FanOuts)
	if refused := (*commandstore.RefusedError)(nil); errors.As(err, &refused) || errors.Is(err, apidb.ErrNoJob) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := apievent.Command(kept)
	if err != nil {
		return err
	}
	r.Outgoing.Add([]jobevent.Item{e})
	return nil
}

// report keeps the outcome of a fan-out as that of an outside system, and publishes it.
func (r *Runner) report(ctx context.Context, outcome apibody.Callback) error {
	sealed := outcome
	sealed.Output = r.Rules.Sealer.Seal(sealing.OfAttempt(outcome.JobID, outcome.Attempt, sealing.Output), outcome.Output)
	sealed.Message = r.Rules.Sealer.SealText(
		sealing.OfJob(outcome.JobID, sealing.Message), jobevent.CleanMessage(outcome.Message))
	taken, err := r.Callbacks.KeepAs(ctx, outcome, sealed, "")
	if refused := (*callbackstore.RefusedError)(nil); errors.As(err, &refused) || errors.Is(err, apidb.ErrNoJob) {
		return nil // it has ended, is being cancelled, or another process has reported
	}
	if err != nil || taken.Callback == nil {
		return err
	}
	e, err := apievent.Callback(*taken.Callback)
	if err != nil {
		return fmt.Errorf("report on fan-out: %w", err)
	}
	r.Outgoing.Add([]jobevent.Item{e})
	return nil
}
