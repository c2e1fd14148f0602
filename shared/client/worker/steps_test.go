package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

// sell is a handler of two steps with a sleep between them.
func sell(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
	charge, err := durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (string, error) {
		<-time.After(20 * time.Millisecond)
		return "charged", nil
	})
	if err != nil {
		return nil, err
	}
	if err := durable.Sleep(ctx, a.Checkpoint, "cool off", time.Hour); err != nil {
		return nil, err
	}
	_, err = durable.Step(ctx, a.Checkpoint, "mail", func(context.Context) (any, error) { return nil, nil })
	return charge, err
}

func TestEachStepIsSavedAlone(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, sell, func(g *gateway) {
		g.waiting("a")
		after(time.Second)
		if r := g.one("a"); r.Status != client.WorkSnoozed || r.DelayMs != time.Hour.Milliseconds() {
			t.Errorf("ended as %+v", r)
		}
		if len(g.saved()) != 2 || len(g.reads) != 0 || len(g.saves) != 0 {
			t.Fatalf("%+v, %+v, %+v", g.saved(), g.reads, g.saves)
		}
		charge, sleep := g.saved()[0], g.saved()[1]
		if charge.Worker != "w" || charge.Token != "a" || charge.Name != "charge" || string(charge.Result) != `"charged"` ||
			charge.Until != nil || charge.TookMs == nil || *charge.TookMs < 20 {
			t.Errorf("%+v", charge)
		}
		if sleep.Name != "cool off" || sleep.Result != nil || sleep.TookMs != nil || sleep.Until == nil ||
			time.Until(*sleep.Until).Round(time.Minute) != time.Hour {
			t.Errorf("%+v", sleep)
		}
	})
}

func TestALaterAttemptReadsTheStepsOfAllPages(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, sell, func(g *gateway) {
		tries := 0
		g.read = func(r stepsRead) (int, any) {
			if tries++; tries == 2 {
				return http.StatusServiceUnavailable, stepError(http.StatusServiceUnavailable)
			}
			if r.After == "" {
				return http.StatusOK, map[string]any{"next": "charge", "steps": []any{
					map[string]any{"name": "charge", "result": "before", "until": nil, "attempt": 1, "tookMs": 5, "savedAt": time.Now()},
				}}
			}
			return http.StatusOK, map[string]any{"next": nil, "steps": []any{
				map[string]any{"name": "cool off", "result": nil, "until": time.Now(), "attempt": 1, "tookMs": nil, "savedAt": time.Now()},
			}}
		}
		a := attempt("a")
		a.Attempt = 2
		g.give <- a
		g.start()
		after(20 * time.Second)
		if r := g.one("a"); r.Status != client.Completed || string(r.Output) != `"before"` {
			t.Errorf("ended as %+v", r)
		}
		if len(g.saved()) != 1 || g.saved()[0].Name != "mail" || string(g.saved()[0].Result) != "null" {
			t.Errorf("saved %+v", g.saved())
		}
		first, again := stepsRead{"w", "a", ""}, stepsRead{"w", "a", "charge"}
		if len(g.reads) != 3 || g.reads[0] != first || g.reads[1] != again || g.reads[2] != again {
			t.Errorf("read %+v", g.reads)
		}
	})
}

func TestTheSaveOfAStepIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		return durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (string, error) { return "once", nil })
	}, func(g *gateway) {
		g.step = func(tries int) int {
			if tries < 8 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		g.broken = func(path string) bool { return strings.HasSuffix(path, "/steps") && len(g.steps) < 10 }
		g.waiting("a")
		after(2 * time.Minute)
		if r := g.one("a"); r.Status != client.Completed || string(r.Output) != `"once"` || len(g.saved()) != 10 {
			t.Errorf("ended as %+v after %d saves", r, len(g.saved()))
		}
	})
}

func TestTheStoredResultIsThatOfTheStep(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		return durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (string, error) { return "mine", nil })
	}, func(g *gateway) {
		g.steps = []savedStep{{Token: "a", Name: "charge", Result: json.RawMessage(`"of the other attempt"`)}}
		g.waiting("a")
		after(time.Second)
		if r := g.one("a"); string(r.Output) != `"of the other attempt"` {
			t.Errorf("ended as %+v", r)
		}
	})
}

func TestAnAttemptThatIsOverSavesNoStep(t *testing.T) {
	t.Parallel()
	var saved, cause error
	work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		_, saved = durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (any, error) { return nil, nil })
		cause = context.Cause(ctx)
		return nil, saved
	}, func(g *gateway) {
		g.step = func(int) int { return http.StatusConflict }
		g.waiting("a")
		after(time.Second)
		if !errors.Is(saved, durable.ErrOver) || !errors.Is(cause, worker.ErrLost) || len(g.resultsOf("a")) != 0 {
			t.Errorf("saved with %v, ended by %v, settled %v", saved, cause, g.resultsOf("a"))
		}
	})
}

func TestAStepThatIsRefusedFailsTheJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		result any
		code   string
		saves  int
	}{
		{http.StatusBadRequest, "receipt", "API.INVALID_JOB_REQUEST", 1},
		{http.StatusOK, "receipt" + strings.Repeat("x", durable.MaxResult), durable.ResultTooLarge, 0},
		{http.StatusOK, func() {}, durable.NotJSON, 0},
	} {
		work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
			return durable.Step(ctx, a.Checkpoint, "charge", func(context.Context) (any, error) { return c.result, nil })
		}, func(g *gateway) {
			g.step = func(int) int { return c.status }
			g.waiting("a")
			after(time.Second)
			r := g.one("a")
			if r.Status != client.Failed || r.ErrorCode != c.code || *r.Retryable || len(g.saved()) != c.saves ||
				!strings.Contains(r.Message, `step "charge" has`) && c.code != durable.NotJSON {
				t.Errorf("ended as %.300v after %d saves", r, len(g.saved()))
			}
		})
	}
}

// A step that is running when the job is cancelled has had its effect, so its result is saved.
func TestAStepThatEndsAfterItsAttemptShouldHaveEndedIsSaved(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		return durable.Step(ctx, a.Checkpoint, "charge", func(ctx context.Context) (string, error) { <-ctx.Done(); return "late", nil })
	}, func(g *gateway) {
		g.heartbeat = func(client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			return http.StatusOK, client.WorkHeartbeatAnswer{Cancelled: []string{"a"}}
		}
		g.waiting("a")
		after(10 * time.Second)
		if r := g.one("a"); len(g.saved()) != 1 || string(g.saved()[0].Result) != `"late"` || string(r.Output) != `"late"` {
			t.Errorf("saved %+v, ended as %+v", g.saved(), r)
		}
	})
}

func TestANameThatTheGatewayRefusesFailsTheJobBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"":                       `must not be empty: ""`,
		strings.Repeat("é", 201): "must have at most 200 characters",
		"a\nb":                   `must not contain control characters: "a\nb"`,
		"a\u0085":                "must not contain control characters",
		"a\xff":                  "must be valid UTF-8",
	} {
		for kind, begin := range map[string]func(ctx context.Context, a *worker.Attempt) error{
			"step": func(ctx context.Context, a *worker.Attempt) error {
				_, err := durable.Step(ctx, a.Checkpoint, name, func(context.Context) (any, error) {
					t.Errorf("step %q runs", name)
					return nil, nil
				})
				return err
			},
			"sleep": func(ctx context.Context, a *worker.Attempt) error {
				return durable.Sleep(ctx, a.Checkpoint, name, time.Hour)
			},
			"wait": func(ctx context.Context, a *worker.Attempt) error {
				_, err := worker.Receive(ctx, a, name, worker.EventWait{Type: "B"})
				return err
			},
		} {
			work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
				return nil, begin(ctx, a)
			}, func(g *gateway) {
				g.waiting("a")
				after(time.Second)
				r := g.one("a")
				if r.Status != client.Failed || r.ErrorCode != durable.InvalidName || *r.Retryable || len(g.saved()) != 0 ||
					!strings.Contains(r.Message, wrong) {
					t.Errorf("%s %q ended as %+v after %d saves", kind, name, r, len(g.saved()))
				}
			})
		}
	}
	work(t, worker.Options{}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		return durable.Step(ctx, a.Checkpoint, strings.Repeat("é", 200), func(context.Context) (int, error) { return 7, nil })
	}, func(g *gateway) {
		g.waiting("a")
		after(time.Second)
		if r := g.one("a"); string(r.Output) != "7" {
			t.Errorf("ended as %+v", r)
		}
	})
}

// sideBySide is a handler that sleeps beside a step, which takes a minute or ends with the context.
func sideBySide(calls *atomic.Int32) handle {
	return func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		charged := make(chan error, 1)
		go func() {
			_, err := durable.Step(ctx, a.Checkpoint, "charge", func(ctx context.Context) (string, error) {
				calls.Add(1)
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
				return "charged", nil
			})
			if err == nil {
				_, err = durable.Step(ctx, a.Checkpoint, "mail", func(context.Context) (any, error) { return nil, nil })
			}
			charged <- err
		}()
		<-time.After(time.Second)
		if err := durable.Sleep(ctx, a.Checkpoint, "cool off", time.Hour); err != nil {
			return nil, err
		}
		return nil, <-charged
	}
}

func TestAnAttemptEndsAfterTheStepsThatItsHandlerLeavesRunning(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	work(t, worker.Options{Slots: 1}, sideBySide(&calls), func(g *gateway) {
		g.waiting("a")
		after(50 * time.Second)
		if len(g.resultsOf("a")) != 0 || g.claimed() != 1 {
			t.Errorf("settled %+v, %d claims, while the step runs", g.resultsOf("a"), g.claimed())
		}
		after(15 * time.Second)
		if r := g.one("a"); r.Status != client.WorkSnoozed || r.DelayMs != time.Hour.Milliseconds() {
			t.Errorf("ended as %+v", r)
		}
		if len(g.saved()) != 2 || g.saved()[1].Name != "charge" || string(g.saved()[1].Result) != `"charged"` || calls.Load() != 1 {
			t.Errorf("saved %+v after %d calls", g.saved(), calls.Load())
		}
	})
}

func TestAStepThatRunsOnEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	for reason, end := range map[string]func(g *gateway, a *client.WorkAttempt){
		"deadline": func(_ *gateway, a *client.WorkAttempt) { a.Deadline = time.Now().Add(10 * time.Second) },
		"cancelled": func(g *gateway, _ *client.WorkAttempt) {
			g.heartbeat = func(client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
				return http.StatusOK, client.WorkHeartbeatAnswer{Cancelled: []string{"a"}}
			}
		},
	} {
		var calls atomic.Int32
		work(t, worker.Options{}, sideBySide(&calls), func(g *gateway) {
			a := attempt("a")
			end(g, &a)
			g.give <- a
			g.start()
			after(12 * time.Second)
			if r := g.one("a"); r.Status != client.WorkSnoozed || len(g.saved()) != 2 || g.saved()[1].Name != "charge" {
				t.Errorf("%s: ended as %+v, saved %+v", reason, r, g.saved())
			}
		})
	}
}

func TestALostAttemptWaitsForNoStep(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{Slots: 1}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		go func() {
			_, _ = durable.Step(ctx, a.Checkpoint, "deaf", func(context.Context) (any, error) {
				<-time.After(time.Hour)
				return nil, nil
			})
		}()
		<-time.After(time.Second)
		return nil, nil
	}, func(g *gateway) {
		g.heartbeat = func(client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			return http.StatusOK, client.WorkHeartbeatAnswer{Lost: []string{"a"}}
		}
		g.waiting("a")
		after(10 * time.Second)
		if g.claimed() != 2 || len(g.resultsOf("a")) != 0 {
			t.Errorf("%d claims, settled %+v", g.claimed(), g.resultsOf("a"))
		}
		after(time.Hour)
	})
}
