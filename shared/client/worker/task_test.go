package worker_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

func TestAWorkerDescribesItsTasksBeforeItClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{t: t, give: make(chan client.WorkAttempt, 1)}
		w := newWorker(g, worker.Options{}, nil)
		g.describe = func(asked int) int {
			select {
			case <-w.Ready():
				t.Error("it is ready before")
			default:
			}
			if len(g.claims) > 0 {
				t.Error("it has claimed before")
			}
			if asked == 1 {
				return http.StatusServiceUnavailable
			}
			return http.StatusNoContent
		}
		task := client.Task[payload, int]{Type: "COUNT", Title: "Count on", Schedules: []client.TaskSchedule[payload]{
			{Name: "nightly", Cron: "@daily", Payload: payload{3}},
		}}
		worker.HandleTask(w, &task, func(_ context.Context, _ *worker.Attempt, in payload) (int, error) { return in.N + 1, nil })
		one := attempt("a")
		one.JobType = "COUNT"
		g.give <- one
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		after(20 * time.Second)
		<-w.Ready()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if r := g.one("a"); string(r.Output) != "8" {
			t.Errorf("settled %+v", r)
		}
		if len(g.described) != 3 || !strings.HasPrefix(g.described[1], `COUNT {"title":"Count on","schema":{`) ||
			!strings.HasPrefix(g.described[2], `COUNT/schedules {"schedules":[{"name":"nightly","cron":"@daily","job":{"jobType":"COUNT","payload":{"N":3},`) {
			t.Errorf("described %q", g.described)
		}
	})
}

func TestAWorkerEndsIfItsTaskIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{t: t, describe: func(int) int { return http.StatusConflict }}
		w := newWorker(g, worker.Options{}, nil)
		task := client.Task[payload, int]{Type: "EMAIL"}
		worker.HandleTask(w, &task, func(context.Context, *worker.Attempt, payload) (int, error) { return 0, nil })
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "describe job type EMAIL") {
			t.Errorf("it ended with %v", err)
		}
	})
}
