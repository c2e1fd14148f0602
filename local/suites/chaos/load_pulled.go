package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/pulled"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// submitWaiting submits a job that waits for an event and for jobs that it calls. Half of the events come before it.
// Some jobs are cancelled meanwhile.
func (l *load) submitWaiting(rnd *rand.Rand) {
	caller, called := waitingShape, calledShape
	if rnd.IntN(5) == 0 {
		caller, called = forsakenShape, leftShape
	}
	o := l.newOrder(rnd, caller, nil)
	o.cents = 1 + rnd.IntN(10_000)
	l.mu.Lock()
	for i := range pulled.Calls {
		key := pulled.CalledKey(o.key, i)
		l.orders = append(l.orders, &order{key: key, shape: called, caller: o.key, asked: o.asked})
	}
	l.mu.Unlock()
	early, later := rnd.IntN(2) == 0, time.Duration(rnd.IntN(4000))*time.Millisecond
	if early {
		l.send(o, o.cents)
	}
	l.submit(o)
	l.following.Go(func() {
		if !early && retry.Pause(l.follow, later) {
			l.send(o, o.cents)
		}
		if retry.Pause(l.follow, later/4) { // it has the same source and id, so it does not count
			l.send(o, o.cents+1)
		}
	})
}

// send sends the event for which a job waits.
func (l *load) send(o *order, cents int) {
	data, err := json.Marshal(pulled.Paid{Key: o.key, Cents: cents})
	if err != nil {
		panic(err) // a text and a number
	}
	l.ask("POST /events", func(ctx context.Context, api *client.Client) error {
		_, err := api.SendEvent(ctx, client.CloudEvent{ID: o.key, Source: "/chaos", Type: pulled.EventType, Data: data})
		return err
	})
}

// submitTogether submits jobs for a batch handler.
func (l *load) submitTogether(rnd *rand.Rand) {
	var list []*order
	for range 2 + rnd.IntN(4) {
		list = append(list, l.newOrder(rnd, togetherShape, nil))
	}
	l.submitAll(list)
}
