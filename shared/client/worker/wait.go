package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
)

const (
	maxAsked = 20 // waits of a request

	attemptOver = "API.ATTEMPT_OVER"
)

// EventWait is what a handler waits for. Every event that fits wakes it, whatever sends it.
type EventWait struct {
	Type    string         // of the CloudEvent
	Source  string         // empty: any
	Subject string         // empty: any
	Match   map[string]any // members that the data must have, by their paths (order.id); nil: any data
	Timeout time.Duration  // 0: as long as it takes
}

// Receive waits for a CloudEvent that is sent to the gateway, by a client, a hook, a trigger or a person. It returns
// the event also if it came before, or nil if the time is over. Until then it returns a *durable.Snooze, which the
// handler returns as its error: it keeps no slot, and is called again when the event has come. An event is given to a
// job once. The name must differ from those of the attempt's steps and other waits.
func Receive(ctx context.Context, a *Attempt, name string, wait EventWait) (*client.CloudEvent, error) {
	stands, err := a.await(ctx, client.WorkWait{Name: name, Timeout: wait.Timeout, Event: &client.EventWait{
		Type: wait.Type, Source: wait.Source, Subject: wait.Subject, Match: wait.Match,
	}})
	if err != nil {
		return nil, err
	}
	return stands[0].Event, nil
}

// CallError is the error of a call whose job has not completed. A handler that returns it fails without a retry: the
// job had retries of its own. If the handler's job is retried by hand, it calls again.
type CallError struct {
	Name   string
	JobID  string
	Status string // FAILED or CANCELLED
	Code   string // empty: none
	Reason string
}

// Error describes it.
func (e *CallError) Error() string {
	text := fmt.Sprintf("%s: job %s is %s", e.Name, e.JobID, e.Status)
	if e.Code != "" {
		text += ": " + e.Code + ": " + e.Reason
	}
	return text
}

// Call submits a job of a task and returns its output once it is COMPLETED. Until then it returns a *durable.Snooze,
// which the handler returns as its error: it keeps no slot, and is called again when the job has ended. A job that ends
// otherwise is a *CallError. However often the handler is called, a call makes one job, which is cancelled if the
// handler's job ends first. The name must differ from those of the attempt's steps and other waits. The API key of the
// worker needs the role submit.
func Call[In, Out any](
	ctx context.Context, a *Attempt, name string, task *client.Task[In, Out], in In, with ...func(*client.JobRequest),
) (out Out, err error) {
	outs, err := call(ctx, a, []string{name}, "", task, []In{in}, with)
	if err != nil {
		return out, err
	}
	return outs[0], nil
}

// CallAll is Call for many payloads. The handler is called again when all jobs have ended. The outputs are in the order
// of the payloads; the error is that of the first job that has not completed.
func CallAll[In, Out any](
	ctx context.Context, a *Attempt, name string, task *client.Task[In, Out], all []In, with ...func(*client.JobRequest),
) ([]Out, error) {
	names := make([]string, len(all))
	for i := range names {
		names[i] = name + " " + strconv.Itoa(i)
	}
	return call(ctx, a, names, name, task, all, with)
}

func call[In, Out any](
	ctx context.Context, a *Attempt, names []string, group string, task *client.Task[In, Out], all []In,
	with []func(*client.JobRequest),
) ([]Out, error) {
	waits := make([]client.WorkWait, len(all))
	for i, in := range all {
		request := task.Request(in, with...)
		waits[i] = client.WorkWait{Name: names[i], Group: group, Job: &request}
	}
	stands, err := a.await(ctx, waits...)
	if err != nil {
		return nil, err
	}
	outs := make([]Out, len(all))
	for i := range stands {
		job := stands[i].Job
		if job == nil || job.Status != client.Completed {
			return nil, failedCall(names[i], job)
		}
		if err := json.Unmarshal(job.Output, &outs[i]); err != nil {
			return nil, fmt.Errorf("read output of %s, job %s: %w", names[i], job.JobID, err)
		}
	}
	return outs, nil
}

func failedCall(name string, job *client.CalledJob) *CallError {
	e := &CallError{Name: name, Status: client.Failed}
	if job == nil {
		return e
	}
	e.JobID, e.Status = job.JobID, job.Status
	if job.LastError != nil {
		e.Code, e.Reason = job.LastError.ErrorCode, job.LastError.Message
	}
	return e
}

// await returns how waits stand once none is open; until then the error is a *durable.Snooze.
func (a *Attempt) await(ctx context.Context, waits ...client.WorkWait) (stands []client.WorkWaitState, err error) {
	for _, wait := range waits {
		if err := a.Checkpoint.Use(ctx, wait.Name); err != nil {
			return nil, err
		}
	}
	var delay time.Duration
	for len(waits) > 0 {
		some := waits[:min(len(waits), maxAsked)]
		answer, err := a.Ask(ctx, some)
		if err != nil {
			return nil, fmt.Errorf("wait for %s: %w", some[0].Name, err)
		}
		if answer.Delay > 0 && (delay == 0 || answer.Delay < delay) {
			delay = answer.Delay
		}
		stands, waits = append(stands, answer.Waits...), waits[len(some):]
	}
	if delay > 0 {
		return nil, &durable.Snooze{For: delay}
	}
	return stands, nil
}

// ask asks the gateway how waits stand.
func (a *Attempt) ask(
	ctx context.Context, w *Worker, waits []client.WorkWait,
) (answer client.WorkWaitAnswer, err error) {
	err = a.persist(ctx, w, func(ctx context.Context) (err error) {
		answer, err = w.c.WaitInAttempt(ctx, w.o.Name, a.Token, waits...)
		return err
	})
	if err == nil && len(answer.Waits) != len(waits) {
		err = fmt.Errorf("%d waits have %d answers", len(waits), len(answer.Waits))
	}
	return answer, err
}

// persist sends a request about the attempt until there is an answer, or until ctx or the attempt is over.
func (a *Attempt) persist(ctx context.Context, w *Worker, send func(ctx context.Context) error) error {
	for n := 0; ctx.Err() == nil && a.alive.Err() == nil; n++ {
		within, cancel := context.WithTimeout(ctx, settleTime)
		err := send(within)
		cancel()
		var refused *client.Error
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.ErrorCode == attemptOver:
			a.end(ErrLost)
			return durable.ErrOver
		case isFinal(err):
			return &durable.Failure{Code: refusedCode(err), Message: err.Error()}
		}
		w.o.Logger.WarnContext(ctx, "a request of an attempt failed, and is repeated", "error", err)
		pause(ctx, n)
	}
	if a.alive.Err() == nil {
		return context.Cause(ctx)
	}
	return durable.ErrOver
}

func refusedCode(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) && refused.ErrorCode != "" {
		return refused.ErrorCode
	}
	return "WORKER.REQUEST_REFUSED"
}
