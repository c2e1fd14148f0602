package queues

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// endEvery is the time between looks at queues that are being removed.
	endEvery = 2 * time.Second
	// topicsEvery is the time between looks for topics of queues that were removed lately.
	topicsEvery = 10 * time.Second
)

// Run ends removals until ctx ends. All gateways do it, one at a time for each queue.
func (a *API) Run(ctx context.Context) {
	a.ending.What = "remove queues"
	tick := time.NewTicker(endEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := edge.Within(ctx, edge.RequestPatience, a.endAll); ctx.Err() == nil {
			a.ending.Note(ctx, err)
		}
	}
}

func (a *API) endAll(ctx context.Context) error {
	names, err := a.Store.Ending(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	live, err := a.liveWorkers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	withTopics, err := a.lookForTopics(ctx)
	errs = append(errs, err)
	for _, name := range names {
		hasTopic := slices.Contains(withTopics, name)
		controls, gone, err := a.Store.End(ctx, name, live[name] > 0, hasTopic, func(ctx context.Context) error {
			return a.onBroker(ctx, name, a.Topics.Delete)
		})
		errs = append(errs, err)
		if err != nil {
			continue
		}
		if len(controls) > 0 || gone {
			a.Controls.ForgetControls()
			a.publish(controls...)
		}
		if gone {
			telemetry.Logger(ctx).InfoContext(ctx, "queue removed", "queue", name)
		}
	}
	return errors.Join(errs...)
}

// lookForTopics returns the queues that have a topic; none if it has looked lately.
func (a *API) lookForTopics(ctx context.Context) ([]string, error) {
	if time.Since(a.lookedForTopics) < topicsEvery {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	queues, err := a.Topics.Queues(ctx)
	if err == nil {
		a.lookedForTopics = time.Now()
	}
	return queues, err
}
