package interplay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// stepsType is a job type whose handler is that of a Go pull worker beside the installation: two steps with a sleep
// between them, and then the act that its payload has.
const stepsType = "STEPS"

type stepsPayload struct {
	URL  string          `json:"url"` // of the witness, for the act
	Data json.RawMessage `json:"data"`
}

// workSteps runs jobs with steps until the context ends.
func (i *Installation) workSteps(ctx context.Context) {
	for ctx.Err() == nil {
		w := worker.New(i.API, worker.Options{
			Slots: 50, Name: "steps", Grace: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		worker.Handle(w, stepsType, runSteps)
		_ = w.Run(ctx)
		retry.Pause(ctx, 200*time.Millisecond)
	}
}

func runSteps(ctx context.Context, a *worker.Attempt, p stepsPayload) (any, error) {
	for i, name := range []string{"first", "second"} {
		if i > 0 {
			if err := durable.Sleep(ctx, a.Checkpoint, "rest", 150*time.Millisecond); err != nil {
				return nil, err
			}
		}
		_, err := durable.Step(ctx, a.Checkpoint, name, func(ctx context.Context) (string, error) {
			status, _, err := callWitness(ctx, a, strings.Replace(p.URL, "/function/", "/step/", 1)+"?step="+name, p.Data)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("the witness answered %d", status)
			}
			return "done " + name, err
		})
		if err != nil {
			return nil, err
		}
	}
	status, body, err := callWitness(ctx, a, p.URL, p.Data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil || status >= http.StatusInternalServerError:
		return nil, &worker.Failure{Code: "TEST.FAILED", Retryable: true, Message: fmt.Sprint(status, err)}
	case status >= http.StatusBadRequest:
		return nil, &worker.Failure{Code: "TEST.FATAL"}
	case len(body) == 0:
		return nil, nil
	}
	return json.RawMessage(body), nil
}

func callWitness(ctx context.Context, a *worker.Attempt, url string, data []byte) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Ce-Jobid", a.JobID)
	req.Header.Set("Ce-Attempt", strconv.Itoa(a.Attempt))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, errors.Join(err, res.Body.Close())
}

// StepRun is one run of a step of a job, as the witness saw it.
type StepRun struct {
	Job     string    `json:"job"`
	Attempt int       `json:"attempt"`
	Step    string    `json:"step"`
	Start   time.Time `json:"start"`
}

// step writes down that a step of a job runs.
func (w *Witness) step(out http.ResponseWriter, in *http.Request) {
	l := w.of(in.PathValue("owner"))
	if l == nil {
		out.WriteHeader(http.StatusGone)
		return
	}
	s := &StepRun{Job: in.Header.Get("Ce-Jobid"), Step: in.URL.Query().Get("step"), Start: time.Now()}
	s.Attempt, _ = strconv.Atoi(in.Header.Get("Ce-Attempt"))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, s)
}

var stepRules = []Rule{{
	"steps", "A step whose result is stored never runs again.", "docs/long-jobs.md",
	func(f *facts, found func(_, _, _ string)) {
		ran := map[string]*StepRun{}
		for _, s := range f.Steps {
			j := f.Jobs[s.Job]
			before := ran[s.Job+s.Step]
			ran[s.Job+s.Step] = s
			// A cancel or a stopped process may come between the step and the save of its result.
			if before == nil || j == nil || len(f.lives(j)) > 1 || len(f.may(s.Job, "cancel")) > 0 || f.disturbed(before.Start, s.Start) {
				continue
			}
			found(f.name(s.Job), fmt.Sprintf("the step %q runs once: it ran in attempt %d", s.Step, before.Attempt), fmt.Sprintf("it ran again in attempt %d", s.Attempt))
		}
	},
}}
