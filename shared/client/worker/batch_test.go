package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/jobrun"
)

// runAll runs attempts at once, and returns what their handler returned for each.
func runAll(ctx context.Context, w *Worker, jobType string, payloads ...string) (outs []string) {
	outs = make([]string, len(payloads))
	var all sync.WaitGroup
	for i, payload := range payloads {
		all.Go(func() {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if payload == `"cancelled"` {
				time.AfterFunc(time.Second, func() { cancel(ErrCancelled) })
			}
			out, _, err := w.Call(ctx, &Attempt{WorkAttempt: client.WorkAttempt{Info: jobrun.Info{JobType: jobType}, Payload: []byte(payload)}})
			if outs[i] = string(out); err != nil {
				outs[i] = err.Error()
			}
		})
	}
	all.Wait()
	return outs
}

func TestABatchHandlerTakesManyJobsAndEndsEachAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(client.New("http://none", ""), Options{Slots: 20})
		var mu sync.Mutex
		var sizes []int
		began := time.Now()
		HandleBatch(w, &client.Task[string, string]{Type: "EMBED"}, BatchOptions{Max: 3, Wait: time.Second},
			func(ctx context.Context, items []*BatchItem[string, string]) error {
				mu.Lock()
				sizes = append(sizes, len(items))
				mu.Unlock()
				for _, item := range items {
					switch item.Payload {
					case "broken":
						item.Return("", errors.New("it is broken"))
						item.Return("again", nil)
					case "panic":
						panic("no")
					case "forgotten":
					case "cancelled":
						<-item.Context().Done()
						item.Return("", context.Cause(item.Context()))
					case "all":
						return errors.New("the API is away")
					default:
						item.Return("<"+item.Payload+">", ctx.Err())
					}
				}
				return nil
			})
		for _, c := range []struct{ payloads, want []string }{
			{[]string{`"a"`, `"b"`, `"broken"`}, []string{`"<a>"`, `"<b>"`, "it is broken"}},
			{[]string{`"a"`, `"forgotten"`}, []string{`"<a>"`, errNoResult.Error()}},
			{[]string{`"all"`, `"all"`}, []string{"the API is away", "the API is away"}},
			{[]string{`"cancelled"`, `"a"`, `"b"`}, []string{ErrCancelled.Error(), `"<a>"`, `"<b>"`}},
		} {
			sizes = nil
			if got := runAll(t.Context(), w, "EMBED", c.payloads...); fmt.Sprint(got) != fmt.Sprint(c.want) || len(sizes) != 1 {
				t.Errorf("%v became %q in batches of %v", c.payloads, got, sizes)
			}
		}
		if took := time.Since(began); took != 3*time.Second { // the two full batches did not wait
			t.Errorf("it took %v", took)
		}
		var failure *Failure
		_, _, err := w.Call(t.Context(), &Attempt{WorkAttempt: client.WorkAttempt{Info: jobrun.Info{JobType: "EMBED"}, Payload: []byte(`"panic"`)}})
		if !errors.As(err, &failure) || failure.Code != "WORKER.PANIC" {
			t.Errorf("%v", err)
		}
		sizes = nil
		runAll(t.Context(), w, "EMBED", `"a"`, `"b"`, `"c"`, `"d"`, `"e"`)
		if len(sizes) != 2 {
			t.Errorf("batches of %v", sizes)
		}
	})
}

func TestABatchEndsWhenAllOfItsJobsShouldEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(client.New("http://none", ""), Options{Slots: 20})
		HandleBatch(w, &client.Task[string, string]{Type: "EMBED"}, BatchOptions{},
			func(ctx context.Context, _ []*BatchItem[string, string]) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		began := time.Now()
		got := runAll(t.Context(), w, "EMBED", `"cancelled"`, `"cancelled"`)
		if got[0] != ErrCancelled.Error() || got[1] != got[0] || time.Since(began) != time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
	})
}
