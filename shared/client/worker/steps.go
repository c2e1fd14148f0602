package worker

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
)

// steps returns what keeps the steps of the attempt's job. A first attempt has nothing to read.
func (a *Attempt) steps(w *Worker) durable.Steps {
	s := durable.Steps{Save: func(step durable.Kept) (durable.Kept, error) { return a.saveStep(w, step) }}
	if a.Attempt > 1 {
		s.Read = func(ctx context.Context) ([]durable.Kept, error) { return a.readSteps(ctx, w) }
	}
	return s
}

// awaitSteps waits until the steps that the handler has left running are saved, or the attempt is lost. While a step
// runs, its attempt must not be settled, and its job must not run again.
func (a *Attempt) awaitSteps() {
	select {
	case <-a.Checkpoint.Close():
	case <-a.alive.Done():
	}
}

// saveStep saves a step. It may do so for a moment after the context of the handler has ended: the step has had its
// effect.
func (a *Attempt) saveStep(w *Worker, step durable.Kept) (durable.Kept, error) {
	var kept client.Step
	err := a.persist(a.alive, w, func(ctx context.Context) (err error) {
		kept, err = w.c.SaveStep(ctx, w.o.Name, a.Token, client.WorkStep{
			Name: step.Name, Result: step.Result, Until: step.Until, Took: step.Took,
		})
		return err
	})
	return keptStep(kept), err
}

// readSteps reads the steps that earlier attempts have saved, page by page.
func (a *Attempt) readSteps(ctx context.Context, w *Worker) (all []durable.Kept, err error) {
	for after := ""; ; {
		var page client.StepPage
		err := a.persist(ctx, w, func(ctx context.Context) (err error) {
			page, err = w.c.Steps(ctx, w.o.Name, a.Token, after)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, step := range page.Steps {
			all = append(all, keptStep(step))
		}
		if page.Next == "" {
			return all, nil
		}
		after = page.Next
	}
}

func keptStep(step client.Step) durable.Kept {
	return durable.Kept{
		Name: step.Name, Result: step.Result, Until: step.Until, Took: time.Duration(step.TookMs) * time.Millisecond,
	}
}
