package worker

import (
	"context"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// defaultGather is how long the first job of a batch waits for others.
const defaultGather = 100 * time.Millisecond

// BatchOptions is how a batch handler takes jobs together. Each of the jobs takes a slot of the worker.
type BatchOptions struct {
	Max  int           // jobs at once; 0: as many as the worker has slots
	Wait time.Duration // how long the first one waits for others; 0: 100 ms
}

// BatchItem is a job of a batch.
type BatchItem[In, Out any] struct {
	*Attempt

	Payload In

	mu   sync.Mutex
	done bool
	out  Out
	err  error
	over chan struct{} // closed when it has a result
}

// Return ends the item with its output, or with an error as that of a handler of its own. Only the first call counts.
func (i *BatchItem[In, Out]) Return(out Out, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.done {
		i.done, i.out, i.err = true, out, err
		close(i.over)
	}
}

// Context ends when the item should end, whatever becomes of the rest of the batch.
func (i *BatchItem[In, Out]) Context() context.Context { return i.ctx }

var errNoResult = &Failure{Code: "WORKER.NO_RESULT", Message: "the batch handler has returned no result for the job"}

// HandleBatch registers the handler of a task that takes many jobs at once, such as one that calls an API which does.
// It is called with the jobs that arrive within Wait, and ends each of them with Return. An error, or a panic, ends
// those that have no result yet. Each job is settled, retried and cancelled alone. ctx ends when all of them should
// end.
func HandleBatch[In, Out any](
	w *Worker, task *client.Task[In, Out], o BatchOptions,
	run func(ctx context.Context, items []*BatchItem[In, Out]) error,
) {
	if o.Max <= 0 || o.Max > w.o.Slots {
		o.Max = w.o.Slots
	}
	if o.Wait <= 0 {
		o.Wait = defaultGather
	}
	g := &gathering[In, Out]{o: o, run: run}
	HandleTask(w, task, g.handle)
}

// gathering collects the items of the next batch.
type gathering[In, Out any] struct {
	o   BatchOptions
	run func(ctx context.Context, items []*BatchItem[In, Out]) error

	mu    sync.Mutex
	items []*BatchItem[In, Out]
	timer *time.Timer
}

// handle is the handler of one attempt: it waits for the result that the batch gives it.
func (g *gathering[In, Out]) handle(ctx context.Context, a *Attempt, in In) (out Out, err error) {
	item := &BatchItem[In, Out]{Attempt: a, Payload: in, over: make(chan struct{})}
	item.ctx = ctx
	if !g.add(item) {
		return out, context.Cause(ctx)
	}
	<-item.over
	return item.out, item.err
}

// add adds an item to the next batch, and waits until that begins. It returns false if the item should end before.
func (g *gathering[In, Out]) add(item *BatchItem[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if item.ctx.Err() != nil {
		return false
	}
	g.items = append(g.items, item)
	switch len(g.items) {
	case g.o.Max:
		g.begin()
	case 1:
		g.timer = time.AfterFunc(g.o.Wait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.begin()
		})
	}
	return true
}

// begin starts the batch. The caller holds the mutex.
func (g *gathering[In, Out]) begin() {
	items := g.items
	g.items = nil
	if g.timer != nil {
		g.timer.Stop()
	}
	if len(items) > 0 {
		go g.call(items)
	}
}

func (g *gathering[In, Out]) call(items []*BatchItem[In, Out]) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(items[0].ctx))
	defer cancel(nil)
	left := len(items)
	var mu sync.Mutex
	for _, item := range items {
		defer context.AfterFunc(item.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel(context.Cause(item.ctx))
			}
		})()
	}
	err := error(errNoResult)
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
		var none Out
		for _, item := range items {
			item.Return(none, err)
		}
	}()
	if failed := g.run(ctx, items); failed != nil {
		err = failed
	}
}
