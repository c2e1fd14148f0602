package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const createdQueue = "created-" // begins the names of created queues

// queue creates a queue, submits a few jobs to it and begins its removal while they wait and run.
func (l *load) queue(ctx context.Context, rnd *rand.Rand) {
	name := l.name(createdQueue)
	path := "/api/queues/" + name
	if !l.insist(http.MethodPut, path, 0) {
		return
	}
	s := &shape{
		name: "in a created queue", payload: works(0, 1000, "failAttempts", 1), request: with(retries(5, 100, 300), "queue", name),
		ends: one(completed),
	}
	var orders []*order
	for range 3 + rnd.IntN(5) {
		orders = append(orders, l.newOrder(rnd, s, "batch", true))
	}
	l.submitAll(ctx, orders)
	if l.insist(http.MethodDelete, path+"?drain=true", http.StatusNotFound) {
		l.count("queue removed")
	}
}

// insist sends a request until it is accepted. done is a status that shows that it has been before, when the response
// was lost; 0: none does.
func (l *load) insist(method, path string, done int) bool {
	for {
		ctx, cancel := context.WithTimeout(l.follow, patience)
		_, err := l.fixture.api.Do(ctx, method, path, "", nil, nil)
		cancel()
		var answer *client.Error
		switch {
		case err == nil, errors.As(err, &answer) && answer.Status == done:
			return true
		case wrong(err):
			l.fixture.complain("%s %s: %v", method, path, err)
			return false
		}
		if !retry.Pause(l.follow, 200*time.Millisecond) {
			return false
		}
	}
}

// endQueues waits until the created queues have gone, and their topics. A worker that stood still while its queue was
// removed has created the topic again.
func (h *fixture) endQueues(limit time.Duration) {
	h.t.Helper()
	admin, err := h.admin()
	must(h.t, err)
	defer func() { _ = admin.Close() }()
	err = within(h.t.Context(), limit, func(ctx context.Context) error {
		queues, err := h.api.Queues.List(ctx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if q.Origin == client.QueueCreated {
				return fmt.Errorf("%s is %s", q.Queue, q.State)
			}
		}
		topics, err := admin.ListTopics()
		for topic := range topics {
			if strings.HasPrefix(topic, jobevent.RunTopic(createdQueue)) {
				return fmt.Errorf("%s is there, and its queue is removed", topic)
			}
		}
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
}
