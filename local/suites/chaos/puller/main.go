// Command puller is a pull worker, made with the Go kit, that reports to the witness what it does.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/pulled"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	slots       = 20
	most        = 5 // jobs of a call of the batch handler
	gather      = 300 * time.Millisecond
	reportsFast = 5 * time.Second
)

type puller struct{ name, witness string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	p := puller{os.Getenv(installation.PullerName), os.Getenv(installation.PullerWitness)}
	w := worker.New(client.FromEnv(), worker.Options{Name: p.name, Slots: slots})
	worker.HandleTask(w, &pulled.Waiting, p.wait)
	worker.HandleTask(w, &pulled.Called, p.work)
	worker.HandleBatch(w, &pulled.Together, worker.BatchOptions{Max: most, Wait: gather}, p.workTogether)
	err := w.Run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "puller:", err)
		os.Exit(1)
	}
}

// wait runs a job that has steps, and waits for an event, jobs that it calls and a time.
func (p puller) wait(ctx context.Context, a *worker.Attempt, in pulled.Work) (pulled.Waited, error) {
	return watched(ctx, p, a, in, 0, func(l *installation.Line) (out pulled.Waited, err error) {
		step := func(name string) error {
			l.Name = name
			receipt, err := p.step(ctx, a, in, name)
			out.Receipts = append(out.Receipts, receipt)
			return err
		}
		if err := step(pulled.StepBefore); err != nil {
			return out, err
		}
		l.Name = pulled.EventStep
		event := worker.EventWait{Type: pulled.EventType, Match: map[string]any{"key": in.Key}}
		paid, err := worker.Receive(ctx, a, pulled.EventStep, event)
		if err != nil {
			return out, err
		}
		if err := paid.DecodeData(&out.Paid); err != nil {
			return out, err
		}
		l.Name, event.Timeout = pulled.Again, pulled.AgainFor
		again, err := worker.Receive(ctx, a, pulled.Again, event)
		if err != nil {
			return out, err
		}
		out.Twice = again != nil
		l.Name = pulled.CallStep
		tomorrow := func(r *client.JobRequest) {
			if in.Tomorrow {
				r.Delay = 24 * time.Hour
			}
		}
		out.Parts, err = worker.CallAll(ctx, a, pulled.CallStep, &pulled.Called, parts(in), named, tomorrow)
		if err != nil {
			return out, err
		}
		l.Name = pulled.Nap
		if err := durable.Sleep(ctx, a.Checkpoint, pulled.Nap, pulled.NapFor); err != nil {
			return out, err
		}
		return out, step(pulled.StepAfter)
	})
}

// parts returns the payloads of the jobs that a waiting job calls.
func parts(in pulled.Work) (list []pulled.Work) {
	for i := range pulled.Calls {
		list = append(list, pulled.Work{Key: pulled.CalledKey(in.Key, i), MS: in.MS, FailAttempts: in.FailAttempts * i})
	}
	return list
}

// named gives a called job its key as a tag, and retries like those of the other jobs.
func named(r *client.JobRequest) {
	r.Tags = []string{r.Payload.(pulled.Work).Key}
	r.MaxRetryCount = new(30)
	r.RetryPolicy = &client.RetryPolicy{Type: "fixed", DelayMs: new(int64(200))}
}

// step runs a step, and reports when it runs, and what the attempt has of it.
func (p puller) step(ctx context.Context, a *worker.Attempt, in pulled.Work, name string) (string, error) {
	l := p.line(a, in.Key)
	l.Name = name
	receipt, err := durable.Step(ctx, a.Checkpoint, name, func(ctx context.Context) (string, error) {
		l.What, l.ID = installation.LineStep, strings.ToLower(rand.Text())
		if err := p.report(ctx, l); err != nil {
			return "", err
		}
		if !retry.Pause(ctx, time.Duration(in.MS)*time.Millisecond) {
			return "", context.Cause(ctx)
		}
		return l.ID, nil
	})
	if err != nil {
		return "", err
	}
	l.What, l.ID = installation.LineKept, receipt
	return receipt, p.report(ctx, l)
}

// work runs a job that does not wait.
func (p puller) work(ctx context.Context, a *worker.Attempt, in pulled.Work) (pulled.Done, error) {
	return p.workBeside(ctx, a, in, 0)
}

func (p puller) workBeside(ctx context.Context, a *worker.Attempt, in pulled.Work, n int) (pulled.Done, error) {
	return watched(ctx, p, a, in, n, func(*installation.Line) (pulled.Done, error) {
		if !retry.Pause(ctx, time.Duration(in.MS)*time.Millisecond) {
			return pulled.Done{}, context.Cause(ctx)
		}
		if a.Attempt <= in.FailAttempts {
			return pulled.Done{}, &worker.Failure{Code: installation.FailedCode, Message: "as it was asked to", Retryable: true}
		}
		return pulled.Done{Key: in.Key, Attempt: a.Attempt}, nil
	})
}

// workTogether runs the jobs that came together, each until its own end.
func (p puller) workTogether(_ context.Context, items []*worker.BatchItem[pulled.Work, pulled.Done]) error {
	var all sync.WaitGroup
	for _, item := range items {
		all.Go(func() { item.Return(p.workBeside(item.Context(), item.Attempt, item.Payload, len(items))) })
	}
	all.Wait()
	return nil
}

// watched runs an attempt while the witness watches it. run may name in the line where the attempt is.
func watched[Out any](
	ctx context.Context, p puller, a *worker.Attempt, in pulled.Work, beside int,
	run func(*installation.Line) (Out, error),
) (out Out, err error) {
	l := p.line(a, in.Key)
	l.What, l.Beside = installation.LineStart, beside
	gone, err := p.begin(ctx, l)
	if err != nil {
		return out, err
	}
	defer gone()
	out, err = run(&l)
	var snooze *durable.Snooze
	var failure *worker.Failure
	l.What, l.How = installation.LineEnd, installation.HowCut
	switch {
	case err == nil:
		l.How = installation.HowOK
	case errors.As(err, &snooze):
		l.How = installation.HowSnoozed
	case errors.As(err, &failure):
		l.How = installation.HowFailed
	}
	return out, errors.Join(err, p.report(ctx, l))
}

func (p puller) line(a *worker.Attempt, key string) installation.Line {
	return installation.Line{Job: a.JobID, Attempt: a.Attempt, Key: key, By: p.name}
}

// begin reports the beginning of an attempt. The witness sees by the end of the connection, which gone ends, if this
// process has died.
func (p puller) begin(ctx context.Context, l installation.Line) (gone func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	res, err := p.post(ctx, "/begin", l) //nolint:bodyclose // gone closes it
	if err != nil {
		cancel()
		return nil, err
	}
	return func() {
		cancel()
		_ = res.Body.Close()
	}, nil
}

// report reports a line, also for an attempt that should end.
func (p puller) report(ctx context.Context, l installation.Line) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportsFast)
	defer cancel()
	res, err := p.post(ctx, "/report", l)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (p puller) post(ctx context.Context, path string, l installation.Line) (*http.Response, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.witness+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("%s: %s", path, res.Status), res.Body.Close())
	}
	return res, err
}
