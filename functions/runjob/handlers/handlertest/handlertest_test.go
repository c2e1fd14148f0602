package handlertest_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers/handlertest"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/client/jobtest"
)

type order struct {
	ID string `json:"id"`
}

// shop is the outside system that the handler under test calls.
type shop struct{ charged, mailed int }

// progress is the checkpoint of the handler.
type progress struct {
	Charge string
	WakeAt time.Time
}

func (s *shop) handle(_ context.Context, a *handlers.Attempt, in order) (string, error) {
	var now progress
	if _, err := a.Checkpoint.Load(&now); err != nil {
		return "", err
	}
	if now.Charge == "" {
		s.charged++
		now = progress{"charge of " + in.ID, time.Now().Add(24 * time.Hour)}
		if err := a.Checkpoint.Save(now); err != nil {
			return "", err
		}
	}
	a.Log(slog.LevelInfo, now.Charge)
	a.Progress(50, "charged")
	if left := time.Until(now.WakeAt); left > 0 {
		return "", &durable.Snooze{For: left}
	}
	s.mailed++
	return now.Charge, nil
}

func TestAHandlerSurvivesCrashesAtItsSaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, job := &shop{}, &jobtest.Job{}
		run := func() jobtest.Ran { return handlertest.Run(t.Context(), job, handlers.Typed(s.handle), order{"o-1"}) }

		job.DieBeforeSave = 1 // the charge is made, and not remembered
		if ran := run(); !ran.Died || ran.Err == nil || len(ran.Saves) != 0 || job.Saved != nil {
			t.Errorf("%+v", ran)
		}
		job.DieAfterSave = 1
		if ran := run(); !ran.Died || len(ran.Saves) != 1 || len(ran.Log) != 0 {
			t.Errorf("%+v", ran)
		}
		ran := run()
		if ran.Attempt != 3 || ran.Snooze != 24*time.Hour || ran.Err != nil || s.charged != 2 || s.mailed != 0 ||
			!slices.Equal(ran.Log, []string{"INFO charge of o-1"}) || !slices.Equal(ran.Progress, []string{"50% charged"}) {
			t.Errorf("%+v, %+v", ran, s)
		}
		<-time.After(ran.Snooze)
		if ran := run(); string(ran.Output) != `"charge of o-1"` || ran.Err != nil || s.charged != 2 || s.mailed != 1 {
			t.Errorf("%+v, %+v", ran, s)
		}
	})
}

func TestAHandlerOfRunjobHasNoSteps(t *testing.T) {
	t.Parallel()
	steps := func(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
		_, err := durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (any, error) { return nil, nil })
		return handlers.Result{}, err
	}
	var wrong *durable.Failure
	if ran := handlertest.Run(t.Context(), &jobtest.Job{}, steps, nil); !errors.As(ran.Err, &wrong) || wrong.Code != durable.NoSteps {
		t.Errorf("%+v", ran)
	}
}

func TestAPanicAndAWrongPayloadAreErrors(t *testing.T) {
	t.Parallel()
	panics := func(context.Context, *handlers.Attempt) (handlers.Result, error) { panic("oh no") }
	if ran := handlertest.Run(t.Context(), &jobtest.Job{}, panics, nil); ran.Err == nil || ran.Died {
		t.Errorf("%+v", ran)
	}
	var failure *handlers.Failure
	ran := handlertest.Run(t.Context(), &jobtest.Job{}, handlers.Typed((&shop{}).handle), map[string]int{"x": 1})
	if !errors.As(ran.Err, &failure) || failure.Code != "WORKER.INVALID_PAYLOAD" {
		t.Errorf("%+v", ran)
	}
}

func TestMiddlewareRunsAroundEachHandler(t *testing.T) {
	t.Parallel()
	var seen []string
	note := func(name string) jobrun.Middleware {
		return func(ctx context.Context, a jobrun.Info, next func(context.Context) error) error {
			seen = append(seen, name+" "+a.JobType)
			err := next(ctx)
			seen = append(seen, name)
			return err
		}
	}
	limit := func(ctx context.Context, _ jobrun.Info, next func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := next(ctx); err != nil {
			return errors.Join(errors.ErrUnsupported, err)
		}
		return nil
	}
	registry := handlers.NewRegistry()
	err := handlers.RegisterTyped(registry, "ORDER", func(ctx context.Context, _ *handlers.Attempt, in order) (string, error) {
		if in.ID == "" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return in.ID, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	registry.Use(note("outer"), note("inner"))
	registry.Use(limit)
	synctest.Test(t, func(t *testing.T) {
		if ran := handlertest.Run(t.Context(), &jobtest.Job{}, registry.Find("ORDER"), order{"o-1"}); string(ran.Output) != `"o-1"` {
			t.Errorf("%+v", ran)
		}
		if want := []string{"outer ORDER", "inner ORDER", "inner", "outer"}; !slices.Equal(seen, want) {
			t.Errorf("saw %v", seen)
		}
		ran := handlertest.Run(t.Context(), &jobtest.Job{}, registry.Find("ORDER"), order{})
		if !errors.Is(ran.Err, errors.ErrUnsupported) || !errors.Is(ran.Err, context.DeadlineExceeded) {
			t.Errorf("%+v", ran)
		}
	})
	if registry.Find("OTHER") != nil {
		t.Error("a type without a handler has one")
	}
}
