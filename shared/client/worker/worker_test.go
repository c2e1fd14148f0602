package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

func TestWhatAHandlerReturnsIsSettled(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, c := range map[string]struct {
		run  handle
		want result
	}{
		"output": {
			func(_ context.Context, _ *worker.Attempt, in payload) (any, error) {
				return map[string]any{"<n>": in.N}, nil
			},
			result{Status: "COMPLETED", Output: json.RawMessage(`{"<n>":7}`)},
		},
		"none": {
			func(context.Context, *worker.Attempt, payload) (any, error) { return json.RawMessage(nil), nil },
			result{Status: "COMPLETED", Output: json.RawMessage(`null`)},
		},
		"any error": {
			func(context.Context, *worker.Attempt, payload) (any, error) { return nil, errors.New("no luck") },
			result{Status: "FAILED", Message: "no luck", Retryable: &yes},
		},
		"a failure": {
			func(context.Context, *worker.Attempt, payload) (any, error) {
				return nil, fmt.Errorf("so: %w", &worker.Failure{Code: "A.B", Message: "no", RetryAfter: 90 * time.Second})
			},
			result{Status: "FAILED", ErrorCode: "A.B", Message: "no", Retryable: &no, RetryAfterMs: 90_000},
		},
		"snooze": {
			func(context.Context, *worker.Attempt, payload) (any, error) { return nil, worker.Snooze(time.Minute) },
			result{Status: "SNOOZED", DelayMs: 60_000},
		},
		"wait": {
			func(context.Context, *worker.Attempt, payload) (any, error) { return nil, worker.WaitFor(time.Hour) },
			result{Status: "WAITING", CallbackTimeoutMs: 3_600_000},
		},
		"panic": {
			func(context.Context, *worker.Attempt, payload) (any, error) { panic("oh") },
			result{Status: "FAILED", ErrorCode: "WORKER.PANIC", Message: "panic: oh\n\n", Retryable: &yes},
		},
		"goexit": {
			func(context.Context, *worker.Attempt, payload) (any, error) { runtime.Goexit(); return nil, nil },
			result{Status: "FAILED", ErrorCode: "WORKER.PANIC", Message: "the handler ended its goroutine", Retryable: &yes},
		},
		"no JSON": {
			func(context.Context, *worker.Attempt, payload) (any, error) { return make(chan int), nil },
			result{Status: "FAILED", ErrorCode: "WORKER.INVALID_OUTPUT", Message: "the output has no JSON form: ", Retryable: &no},
		},
		"too large": {
			func(context.Context, *worker.Attempt, payload) (any, error) { return strings.Repeat("x", 256<<10), nil },
			result{Status: "FAILED", ErrorCode: "WORKER.OUTPUT_TOO_LARGE", Message: "the output has ", Retryable: &no},
		},
		"NUL": {
			func(context.Context, *worker.Attempt, payload) (any, error) {
				return nil, errors.New("open a\x00b: no")
			},
			result{Status: "FAILED", Message: "open a\uFFFDb: no", Retryable: &yes},
		},
		"long": {
			func(context.Context, *worker.Attempt, payload) (any, error) {
				return nil, errors.New(strings.Repeat("é", 4<<10))
			},
			result{Status: "FAILED", Message: strings.Repeat("é", 2046) + "…", Retryable: &yes},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work(t, worker.Options{}, c.run, func(g *gateway) {
				g.waiting("a")
				after(time.Second)
				got := g.one("a")
				if c.want.Message == "" || !strings.HasPrefix(got.Message, c.want.Message) {
					c.want.Message += "?"
				} else {
					c.want.Message = got.Message // the rest is a stack, or text from another package
				}
				if c.want.Message == "?" {
					c.want.Message = ""
				}
				c.want.Token = "a"
				if g, w := fmt.Sprintf("%+v", plain(got)), fmt.Sprintf("%+v", plain(c.want)); g != w {
					t.Errorf("it is settled as %s, not %s", g, w)
				}
			})
		})
	}
}

// plain is a result with values in place of pointers.
func plain(r result) any {
	retryable := "-"
	if r.Retryable != nil {
		retryable = fmt.Sprint(*r.Retryable)
	}
	output := string(r.Output)
	r.Output, r.Retryable = nil, nil
	return []any{r, output, retryable}
}

func TestNoAttemptStartsWhileAnEarlierOneOfItsJobStillRuns(t *testing.T) {
	t.Parallel()
	var end chan struct{} // of the bubble
	var runs []int
	work(t, worker.Options{Slots: 2}, func(_ context.Context, a *worker.Attempt, _ payload) (any, error) {
		runs = append(runs, a.Attempt)
		if a.Attempt == 1 {
			<-end // it ignores that it should end
		}
		return a.Attempt, nil
	}, func(g *gateway) {
		end = make(chan struct{})
		next := func(number int) string {
			a := attempt(fmt.Sprint(number))
			a.JobID, a.Attempt = "job", number
			a.Deadline = time.Now().Add(time.Second)
			g.give <- a
			g.start()
			after(3 * time.Second)
			return a.Token
		}
		next(1)
		if got := g.one(next(2)); got.Status != "SNOOZED" || got.DelayMs != 2_000 {
			t.Errorf("the next attempt is settled as %+v", got)
		}
		after(50 * time.Second) // while a claim is open
		if got := g.one(next(3)); got.Status != "SNOOZED" || got.DelayMs != 30_000 {
			t.Errorf("the next attempt is settled as %+v", got)
		}
		close(end)
		after(time.Second)
		if got := g.one(next(4)); got.Status != "COMPLETED" || !slices.Equal(runs, []int{1, 4}) {
			t.Errorf("after %v: %+v", runs, got)
		}
		line := ""
		for _, b := range g.heartbeats {
			for _, s := range b.Attempts {
				if s.Token == "2" && len(s.Log) > 0 {
					line = s.Log[0].Text
				}
			}
		}
		if line != "w still runs attempt 1 of this job: this one is given back" {
			t.Errorf("the log of the second attempt is %q", line)
		}
	})
}

func TestAPayloadThatDoesNotFitFailsForGood(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(context.Context, *worker.Attempt, payload) (any, error) {
		t.Error("it ran")
		return nil, nil
	}, func(g *gateway) {
		a := attempt("a")
		a.Payload = json.RawMessage(`[]`)
		g.give <- a
		g.start()
		after(time.Second)
		if got := g.one("a"); got.ErrorCode != "WORKER.INVALID_PAYLOAD" || *got.Retryable {
			t.Errorf("%+v", got)
		}
	})
}

// untilItsEnd waits for the end of its context, records the cause and the time, and returns the error.
func untilItsEnd(causes *chan error) handle {
	return func(ctx context.Context, _ *worker.Attempt, _ payload) (any, error) {
		<-ctx.Done()
		*causes <- context.Cause(ctx)
		return nil, ctx.Err()
	}
}

// wantEnd waits until a context has ended with a cause, and returns how long that took.
func wantEnd(t *testing.T, causes <-chan error, want error) time.Duration {
	t.Helper()
	start := time.Now()
	if cause := <-causes; !errors.Is(cause, want) {
		t.Errorf("its context ended with %v, not with %v", cause, want)
	}
	took := time.Since(start)
	after(time.Second)
	return took
}

func TestACancelledAttemptEnds(t *testing.T) {
	t.Parallel()
	var causes chan error
	work(t, worker.Options{}, untilItsEnd(&causes), func(g *gateway) {
		causes = make(chan error, 1) // of the bubble
		g.heartbeat = func(b client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			return http.StatusOK, client.WorkHeartbeatAnswer{Cancelled: []string{b.Attempts[0].Token}}
		}
		g.waiting("a")
		if took := wantEnd(t, causes, worker.ErrCancelled); took > 4*time.Second {
			t.Errorf("after %v", took)
		}
		if got := g.one("a"); got.Status != "FAILED" || got.ErrorCode != "WORKER.CANCELLED" {
			t.Errorf("it is settled as %+v", got)
		}
	})
}

func TestALostAttemptEndsAndIsNotSettled(t *testing.T) {
	t.Parallel()
	var causes chan error
	work(t, worker.Options{Slots: 1}, untilItsEnd(&causes), func(g *gateway) {
		causes = make(chan error, 1) // of the bubble
		g.heartbeat = func(b client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			return http.StatusOK, client.WorkHeartbeatAnswer{Lost: []string{b.Attempts[0].Token}}
		}
		g.waiting("a", "b")
		wantEnd(t, causes, worker.ErrLost)
		wantEnd(t, causes, worker.ErrLost) // b now has the slot of a
		if len(g.results) > 0 {
			t.Errorf("it is settled as %+v", g.results)
		}
	})
}

// A worker that is cut off stops when the gateway gives its attempt to another.
func TestAnAttemptWhoseHeartbeatsAreNotAnsweredIsLost(t *testing.T) {
	t.Parallel()
	var causes chan error
	work(t, worker.Options{}, untilItsEnd(&causes), func(g *gateway) {
		causes = make(chan error, 1) // of the bubble
		g.broken = func(path string) bool { return strings.HasSuffix(path, "heartbeat") }
		g.waiting("a")
		if took := wantEnd(t, causes, worker.ErrLost); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("after %v", took)
		}
		if len(g.results) > 0 {
			t.Errorf("it is settled as %+v", g.results)
		}
	})
}

func TestHeartbeatsThatAreAnsweredKeepAnAttempt(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(ctx context.Context, _ *worker.Attempt, _ payload) (any, error) {
		select {
		case <-time.After(5 * time.Minute):
			return "done", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}, func(g *gateway) {
		n := 0
		g.heartbeat = func(client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			if n++; n%3 != 0 { // two of three requests fail
				return http.StatusServiceUnavailable, client.WorkHeartbeatAnswer{}
			}
			return http.StatusOK, client.WorkHeartbeatAnswer{}
		}
		g.waiting("a")
		after(6 * time.Minute)
		if got := g.one("a"); got.Status != "COMPLETED" {
			t.Errorf("it is settled as %+v", got)
		}
	})
}

func TestTheDeadlineEndsAnAttempt(t *testing.T) {
	t.Parallel()
	var causes chan error
	work(t, worker.Options{}, untilItsEnd(&causes), func(g *gateway) {
		causes = make(chan error, 1) // of the bubble
		g.waiting("a")
		if took := wantEnd(t, causes, worker.ErrTimeout); took.Round(time.Second) != 10*time.Minute {
			t.Errorf("after %v", took)
		}
		if got := g.one("a"); got.Status != "FAILED" || got.ErrorCode != "WORKER.TIMEOUT" || !*got.Retryable {
			t.Errorf("it is settled as %+v", got)
		}
	})
}

func done(context.Context, *worker.Attempt, payload) (any, error) { return "done", nil }

// At first the gateway cannot store a result, then its answer is lost on its way, and then the answer arrives.
func TestAResultIsSentUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{Slots: 1}, done, func(g *gateway) {
		n := 0
		g.settle = func(result) int {
			if n++; n <= 3 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		g.broken = func(path string) bool { return strings.HasSuffix(path, "settle") && n == 4 }
		g.waiting("a", "b")
		after(10 * time.Second)
		if len(g.resultsOf("a")) < 5 || len(g.heartbeats) < 1 {
			t.Errorf("%d results and %d heartbeats were sent", len(g.resultsOf("a")), len(g.heartbeats))
		}
		after(time.Minute)
		if got := g.one("b"); got.Status != "COMPLETED" {
			t.Errorf("the next is settled as %+v", got)
		}
		if n := len(g.resultsOf("a")); n > 10 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

func TestAResultThatCountsNoMoreIsSentOnce(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, done, func(g *gateway) {
		g.settle = func(result) int { return http.StatusConflict }
		g.waiting("a")
		after(time.Minute)
		g.one("a")
	})
}

// A heartbeat and a settle cross: the result is stored, the heartbeat is answered that the attempt is lost, and the answer to the
// settle does not arrive.
func TestAResultIsNotSentAgainAfterTheAttemptIsLost(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, done, func(g *gateway) {
		g.settle = func(result) int { return http.StatusServiceUnavailable }
		g.heartbeat = func(b client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			return http.StatusOK, client.WorkHeartbeatAnswer{Lost: []string{b.Attempts[0].Token}}
		}
		g.waiting("a")
		after(4 * time.Second)
		sent := len(g.resultsOf("a"))
		after(time.Minute)
		if n := len(g.resultsOf("a")); n != sent || sent == 0 {
			t.Errorf("%d results were sent before, and %d after", sent, n-sent)
		}
	})
}

func TestAnOutputThatTheGatewayRefusesFailsTheAttempt(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, done, func(g *gateway) {
		g.settle = func(r result) int {
			if r.Status == "COMPLETED" {
				return http.StatusBadRequest
			}
			return http.StatusOK
		}
		g.waiting("a")
		after(time.Minute)
		got := g.resultsOf("a")
		if len(got) != 2 || got[1].ErrorCode != "WORKER.INVALID_OUTPUT" || got[1].Message != "no" || *got[1].Retryable ||
			got[0].Output == nil || got[1].Output != nil {
			t.Errorf("it is settled as %+v", got)
		}
	})
}

func TestWhatIsLoggedComesBeforeTheResult(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, func(_ context.Context, a *worker.Attempt, _ payload) (any, error) {
		for i := range 300 {
			a.Log(slog.LevelWarn, fmt.Sprint("line\x00", i))
		}
		a.Progress(140, "\x00"+strings.Repeat("x", 1000))
		return nil, nil
	}, func(g *gateway) {
		fails, sent := 2, 0
		g.heartbeat = func(b client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			if fails--; fails >= 0 {
				return http.StatusServiceUnavailable, client.WorkHeartbeatAnswer{}
			}
			s := b.Attempts[0]
			for i, line := range s.Log {
				if line.Level != "warn" || line.Text != fmt.Sprint("line\uFFFD", i) {
					t.Errorf("line %d is %+v", i, line)
				}
			}
			if sent += len(s.Log); s.Progress == nil || s.Progress.Percent != 100 || len(s.Progress.Message) != 256 {
				t.Errorf("the progress is %+v", s.Progress)
			}
			return http.StatusOK, client.WorkHeartbeatAnswer{}
		}
		g.settle = func(result) int {
			if sent != 200 {
				t.Errorf("%d lines came before the result", sent)
			}
			return http.StatusOK
		}
		g.waiting("a")
		after(time.Second)
		g.one("a")
	})
}

func TestLongLogsAreSentInSeveralHeartbeats(t *testing.T) {
	t.Parallel()
	const attempts = 8
	work(t, worker.Options{Slots: attempts}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		for range 100 {
			a.Log(slog.LevelInfo, strings.Repeat("\x01", 20<<10))
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}, func(g *gateway) {
		lines := map[string]int{}
		g.heartbeat = func(b client.WorkHeartbeat) (int, client.WorkHeartbeatAnswer) {
			if text, err := json.Marshal(b); err != nil || len(text) > 1<<20 {
				t.Errorf("a heartbeat has %d bytes, %v", len(text), err)
			}
			for _, s := range b.Attempts {
				lines[s.Token] += len(s.Log)
			}
			return http.StatusOK, client.WorkHeartbeatAnswer{}
		}
		for i := range attempts {
			g.waiting(fmt.Sprint(i))
		}
		after(time.Minute)
		for i := range attempts {
			if n := lines[fmt.Sprint(i)]; n != 5 { // four lines of 16 KiB fill the 64 KiB, and the fifth is one too many
				t.Errorf("%d lines of %d were sent", n, i)
			}
		}
	})
}

func TestAWorkerRunsAsManyAttemptsAsItHasSlots(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		running += n
		most = max(most, running)
	}
	const slots, jobs = 3, 20
	work(t, worker.Options{Slots: slots, Queues: []string{"pull"}}, func(context.Context, *worker.Attempt, payload) (any, error) {
		count(1)
		defer count(-1)
		<-time.After(time.Second)
		return nil, nil
	}, func(g *gateway) {
		for i := range jobs {
			g.waiting(fmt.Sprint(i))
		}
		after(jobs * time.Second)
		if most != slots {
			t.Errorf("%d ran at once", most)
		}
		for i := range jobs {
			g.one(fmt.Sprint(i))
		}
		first := g.claims[0]
		if first.Slots != slots || first.Worker != "w" || !slices.Equal(first.Queues, []string{"pull"}) || !slices.Equal(first.Types, []string{"T"}) {
			t.Errorf("it claimed %+v", first)
		}
	})
}

func TestClaimsGoOnAfterErrorsThatPass(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, done, func(g *gateway) {
		statuses := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway}
		n := 0
		g.claim = func(ctx context.Context, _ int) (int, []client.WorkAttempt) {
			if n++; n <= len(statuses) {
				return statuses[n-1], nil
			}
			if n == len(statuses)+1 {
				return http.StatusOK, []client.WorkAttempt{attempt("a")}
			}
			<-ctx.Done()
			return http.StatusNoContent, nil
		}
		g.start()
		after(time.Minute)
		g.one("a")
	})
}

// A gateway that stands still keeps its connections, and the kernel acknowledges what comes.
func TestAGatewayThatStandsStillKeepsAWorkerFromClaimingFor20SecondsAtMost(t *testing.T) {
	t.Parallel()
	work(t, worker.Options{}, done, func(g *gateway) {
		n := 0
		g.claim = func(ctx context.Context, _ int) (int, []client.WorkAttempt) {
			if n++; n == 2 {
				return http.StatusOK, []client.WorkAttempt{attempt("a")}
			}
			<-ctx.Done()
			return http.StatusNoContent, nil
		}
		g.start()
		after(22 * time.Second) // with the pause after the failure
		g.one("a")
	})
}

func TestAClaimThatIsRefusedForGoodEndsTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{t: t}
		n := 0
		g.claim = func(context.Context, int) (int, []client.WorkAttempt) {
			if n++; n == 1 {
				return http.StatusOK, []client.WorkAttempt{attempt("a")}
			}
			return http.StatusForbidden, nil
		}
		w := newWorker(g, worker.Options{Slots: 2}, func(context.Context, *worker.Attempt, payload) (any, error) {
			<-time.After(10 * time.Second) // the handler ends within the grace period
			return nil, nil
		})
		if err := w.Run(t.Context()); !errors.Is(err, client.ErrForbidden) {
			t.Errorf("it ended with %v", err)
		}
		if got := g.one("a"); got.Status != "COMPLETED" {
			t.Errorf("what ran is settled as %+v", got)
		}
	})
}

func TestAStoppingWorkerLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	var g *gateway
	start := time.Time{}
	work(t, worker.Options{Slots: 3}, func(ctx context.Context, a *worker.Attempt, _ payload) (any, error) {
		if a.Token == "quick" {
			<-time.After(20 * time.Second)
			return nil, ctx.Err()
		}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, worker.ErrStopping) || time.Since(start) < 25*time.Second {
			t.Errorf("its context ended with %v after %v", cause, time.Since(start))
		}
		if a.Token == "stubborn" {
			<-time.After(time.Minute)
			return "done all the same", nil
		}
		return nil, ctx.Err()
	}, func(it *gateway) {
		g = it
		g.waiting("quick", "slow", "stubborn")
		after(time.Second)
		start = time.Now()
	})
	for token, status := range map[string]string{"quick": "COMPLETED", "slow": "SNOOZED", "stubborn": "COMPLETED"} {
		if got := g.one(token); got.Status != status || status == "SNOOZED" && got.DelayMs != 1 {
			t.Errorf("%s is settled as %+v", token, got)
		}
	}
}

// The worker is stopped while the answer to its claim is on the way. If it did not give the attempt back, no other
// worker would get it for 15 s.
func TestAnAttemptThatComesWhileAWorkerStopsIsGivenBack(t *testing.T) {
	t.Parallel()
	var g *gateway
	work(t, worker.Options{}, func(context.Context, *worker.Attempt, payload) (any, error) {
		t.Error("it ran")
		return nil, nil
	}, func(it *gateway) {
		g = it
		g.claim = func(context.Context, int) (int, []client.WorkAttempt) {
			<-time.After(time.Second)
			return http.StatusOK, []client.WorkAttempt{attempt("a")}
		}
		g.start()
		after(900 * time.Millisecond)
	})
	if got := g.one("a"); got.Status != "SNOOZED" || got.DelayMs != 1 {
		t.Errorf("it is settled as %+v", got)
	}
}

func TestAnIdleWorkerStopsSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{t: t, give: make(chan client.WorkAttempt)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := newWorker(g, worker.Options{}, done).Run(ctx); err != nil || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
	})
}
