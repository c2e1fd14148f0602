package workertest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
	"github.com/jobweaver/jobweaver/shared/client/jobtest"
	"github.com/jobweaver/jobweaver/shared/client/worker"
	"github.com/jobweaver/jobweaver/shared/client/worker/workertest"
)

type pages struct{ Count int }

// convert is a handler that saves after each page.
func convert(_ context.Context, a *worker.Attempt, in pages) (int, error) {
	var done int
	if _, err := a.Checkpoint.Load(&done); err != nil {
		return 0, err
	}
	first := done
	for done < in.Count {
		done++
		a.Log(slog.LevelInfo, fmt.Sprint("page ", done))
		a.Progress(100*done/in.Count, "")
		if err := a.Checkpoint.Save(done); err != nil {
			return 0, err
		}
	}
	return done - first, nil
}

func TestAHandlerGoesOnBehindItsLastSave(t *testing.T) {
	t.Parallel()
	w := worker.New(client.New("http://none", ""), worker.Options{})
	worker.Handle(w, "CONVERT", convert)
	var took []time.Duration
	w.Use(func(ctx context.Context, _ jobrun.Info, next func(context.Context) error) error {
		began := time.Now()
		err := next(ctx)
		took = append(took, time.Since(began))
		return err
	})
	var job jobtest.Job
	job.DieAfterSave = 2
	if ran := workertest.Run(t.Context(), &job, w, "CONVERT", pages{5}); !ran.Died || string(job.Saved) != "2" {
		t.Errorf("%+v", ran)
	}
	ran := workertest.Run(t.Context(), &job, w, "CONVERT", pages{5})
	if string(ran.Output) != "3\n" && string(ran.Output) != "3" || len(ran.Saves) != 3 || len(ran.Log) != 3 ||
		ran.Log[0] != "info page 3" || len(ran.Progress) != 1 || ran.Progress[0] != "100% " || len(took) != 1 {
		t.Errorf("%+v, %v", ran, took)
	}
	if ran := workertest.Run(t.Context(), &job, w, "OTHER", nil); ran.Err == nil {
		t.Errorf("%+v", ran)
	}
}

func TestSnoozesAndWaitsAreSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := worker.New(client.New("http://none", ""), worker.Options{})
		worker.Handle(w, "WAIT", func(ctx context.Context, a *worker.Attempt, in string) (any, error) {
			switch in {
			case "snooze":
				return nil, worker.Snooze(time.Minute)
			case "sleep":
				return "rested", durable.Sleep(ctx, a.Checkpoint, "night", 8*time.Hour)
			}
			return nil, worker.WaitFor(time.Hour)
		})
		if ran := workertest.Run(t.Context(), &jobtest.Job{}, w, "WAIT", "snooze"); ran.Snooze != time.Minute || ran.Err != nil {
			t.Errorf("%+v", ran)
		}
		if ran := workertest.Run(t.Context(), &jobtest.Job{}, w, "WAIT", "wait"); ran.WaitFor != time.Hour || ran.Err != nil {
			t.Errorf("%+v", ran)
		}
		var job jobtest.Job
		ran := workertest.Run(t.Context(), &job, w, "WAIT", "sleep")
		<-time.After(ran.Snooze)
		if ran := workertest.Run(t.Context(), &job, w, "WAIT", "sleep"); ran.Snooze != 0 || ran.Err != nil || ran.Attempt != 2 {
			t.Errorf("%+v", ran)
		}
	})
}

// settle charges, sleeps and saves how far it is.
func settle(charges *int) func(context.Context, *worker.Attempt, string) (string, error) {
	return func(ctx context.Context, a *worker.Attempt, order string) (string, error) {
		charge, err := durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (string, error) {
			*charges++
			return fmt.Sprint(order, ": charge ", *charges), nil
		})
		if err != nil {
			return "", err
		}
		if err := a.Checkpoint.Save("charged"); err != nil {
			return "", err
		}
		return charge, durable.Sleep(ctx, a.Checkpoint, "cool off", 24*time.Hour)
	}
}

func TestAHandlerMayDieAtEachOfItsSaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for before, charged := range []int{1, 2, 1, 1} { // the charge, the checkpoint, the sleep
			charges := 0
			w := worker.New(client.New("http://none", ""), worker.Options{})
			worker.Handle(w, "SELL", settle(&charges))
			job := jobtest.Job{DieBeforeSave: before}
			run := func() jobtest.Ran { return workertest.Run(t.Context(), &job, w, "SELL", "o-1") }
			if before > 0 {
				if ran := run(); !ran.Died || len(ran.Steps)+len(ran.Saves) != before-1 {
					t.Errorf("%+v", ran)
				}
			}
			ran := run()
			<-time.After(ran.Snooze)
			again := run()
			want := fmt.Sprintf(`"o-1: charge %d"`, charged)
			if ran.Snooze != 24*time.Hour || string(again.Output) != want || charges != charged || len(again.Steps) != 0 {
				t.Errorf("%+v, %+v, %d charges", ran, again, charges)
			}
			charge, sleep := job.Step("charge"), job.Step("cool off")
			if len(job.Steps) != 2 || string(charge.Result) != want || sleep.Until.IsZero() || job.Step("mail") != nil {
				t.Errorf("%+v", job.Steps)
			}
		}
		charges := 0
		w := worker.New(client.New("http://none", ""), worker.Options{})
		worker.Handle(w, "SELL", settle(&charges))
		job := jobtest.Job{DieAfterSave: 1}
		first := workertest.Run(t.Context(), &job, w, "SELL", "o-1")
		if !first.Died || len(first.Steps) != 1 || first.Steps[0].Name != "charge" || job.Saved != nil {
			t.Errorf("%+v", first)
		}
		if ran := workertest.Run(t.Context(), &job, w, "SELL", "o-1"); ran.Snooze == 0 || charges != 1 || len(ran.Steps) != 1 {
			t.Errorf("%+v, %d charges", ran, charges)
		}
	})
}

func TestAnAttemptHasTheStepsThatItsHandlerLeavesRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := worker.New(client.New("http://none", ""), worker.Options{})
		worker.Handle(w, "SELL", func(ctx context.Context, a *worker.Attempt, _ any) (any, error) {
			go func() {
				_, _ = durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (int, error) {
					<-time.After(2 * time.Second)
					return 7, nil
				})
			}()
			<-time.After(time.Second)
			return nil, worker.Snooze(time.Hour)
		})
		var job jobtest.Job
		ran := workertest.Run(t.Context(), &job, w, "SELL", nil)
		if ran.Snooze != time.Hour || len(ran.Steps) != 1 || string(ran.Steps[0].Result) != "7" {
			t.Errorf("%+v", ran)
		}
	})
}
