// Package demo submits sample jobs over the public API and follows them to their ends.
package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/client"
)

// sample is one job, with the terminal state that it must reach.
type sample struct {
	name     string
	about    string
	submit   func(ctx context.Context, c *client.Client) (id string, err error)
	status   string
	attempts int
	check    func(ctx context.Context, job *client.Job) error // checks the effects of the job; nil: there are none
}

// Installation describes the installation on which the demo runs.
type Installation struct {
	Traces   string // the address to which spans are sent; empty: none
	TraceURL string // the address of a trace in the trace UI, with {traceId} for its id; may be empty
	MailPage string // URL of the page with caught mails; empty: the demo sends none

	Patience time.Duration // how long the demo continues without any progress; zero: a minute
}

// result is the outcome of a sample.
type result struct {
	sample
	job *client.Job
	err error
}

func (r result) ok() bool {
	return r.err == nil && r.job.Status == r.status && r.job.Attempt == r.attempts
}

// ErrUnexpected means that a sample did not end as expected.
var ErrUnexpected = errors.New("not every sample job ended as it should")

// Run submits the samples, and prints each event to out as it happens, and a summary at the end.
func Run(ctx context.Context, c *client.Client, installation Installation, out io.Writer) (err error) {
	calls, err := newReceiver(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, calls.close()) }()
	samples := slices.Concat(simulations, workSamples(calls, installation))
	given := ctx
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	t := newPrinter(out, cmp.Or(installation.Patience, time.Minute), giveUp)
	defer t.close()
	results := make([]result, len(samples))
	var all errgroup.Group
	for i, s := range samples {
		all.Go(func() error {
			job, err := follow(ctx, c, s, t)
			if err == nil && s.check != nil {
				err = s.check(ctx, job)
			}
			results[i] = result{s, job, err}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := given.Err(); err != nil {
		return err
	}
	defer traces(out, installation, results)
	return summary(out, results)
}

// traces prints where the trace of each sample can be seen.
func traces(out io.Writer, installation Installation, results []result) {
	if installation.Traces == "" {
		return
	}
	fmt.Fprintf(out, "\nTraces are sent to %s\n", installation.Traces)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range results {
		if r.job == nil {
			continue
		}
		id := strings.ReplaceAll(r.job.TraceID, "-", "")
		fmt.Fprintf(t, "  %s\t%s\n", r.name, cmp.Or(strings.ReplaceAll(installation.TraceURL, "{traceId}", id), id))
	}
	_ = t.Flush() // as in the summary
}

func follow(ctx context.Context, c *client.Client, s sample, t *printer) (*client.Job, error) {
	id, err := s.submit(ctx, c)
	if err != nil {
		t.print(s.name, "refused", err.Error())
		return nil, err
	}
	t.print(s.name, "accepted", s.about)
	var last *client.Job
	job, err := client.Follow(ctx, c, id, func(job *client.Job) {
		last = job
		t.print(s.name, job.Status, detail(job))
	})
	if last != nil && errors.Is(context.Cause(ctx), errSilence) {
		err = context.Cause(ctx)
		if waits := last.WaitsFor(); waits != "" {
			err = fmt.Errorf("%w; it waits for %s", err, waits)
		}
		return last, err
	}
	return job, err
}

// detail describes a job beyond its status.
func detail(job *client.Job) string {
	text := fmt.Sprintf("attempt %d", job.Attempt)
	switch {
	case job.WaitsFor() != "":
		text += " waits for " + job.WaitsFor()
	case job.Status == "RETRYING" && job.LastError != nil && job.NextRunAt != nil:
		text += fmt.Sprintf(" failed (%s), next at %s", job.LastError.Message, job.NextRunAt.Local().Format(clock))
	case job.LastError != nil && job.Status != "COMPLETED":
		text += ": " + job.LastError.ErrorCode + ": " + job.LastError.Message
	case job.Status == "WAITING":
		text += " is in the hands of the outside system"
	case job.OutputText() != "":
		text += ", output " + job.OutputText()
	}
	return text
}

func summary(out io.Writer, results []result) error {
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SAMPLE\tENDED\tATTEMPTS\tTOOK\t")
	good := true
	for _, r := range results {
		verdict := "as it should"
		if !r.ok() {
			good = false
			verdict = fmt.Sprintf("WRONG, should be %s after %d", r.status, r.attempts)
			if r.err != nil {
				verdict = "WRONG: " + r.err.Error()
			}
		}
		if r.job == nil {
			fmt.Fprintf(t, "%s\t%v\t\t\t%s\n", r.name, r.err, verdict)
			continue
		}
		took := r.job.UpdatedAt.Sub(r.job.CreatedAt).Round(time.Millisecond)
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", r.name, r.job.Status, r.job.Attempt, took, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if !good {
		return ErrUnexpected
	}
	return nil
}

// steps makes the body of a SIMULATION job.
func steps(more map[string]any, list ...map[string]any) []byte {
	return job("SIMULATION", map[string]any{"steps": list}, more)
}

func job(jobType string, payload, more map[string]any) []byte {
	request := map[string]any{"jobType": jobType, "payload": payload, "tags": []string{"demo"}}
	maps.Copy(request, more)
	body, err := json.Marshal(request)
	if err != nil {
		panic(err) // cannot happen with maps of strings and numbers
	}
	return body
}
