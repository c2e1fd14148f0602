package killtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// TestEveryJobEndsThoughTheBrokerLosesItsData wipes the broker twice while jobs are in flight: it starts
// anew on an empty disk, and it has all its topics deleted.
func TestEveryJobEndsThoughTheBrokerLosesItsData(t *testing.T) {
	duration(t)
	rnd := newRand(t)
	h := open(t, 2)
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{house: h, rnd: rnd}
	submitting, stopSubmitting := context.WithTimeout(t.Context(), 24*time.Second)
	defer stopSubmitting()
	l.run(submitting)

	pause(submitting, 8*time.Second)
	emptied := func(context.Context) error { return errors.Join(os.RemoveAll(h.brokerDir()), h.broker.start()) }
	c.kill(target{name: "broker's disk", kill: h.broker.kill, restart: emptied}, 500*time.Millisecond)
	pause(submitting, 8*time.Second)
	c.kill(target{name: "all topics", kill: h.deleteTopics, restart: h.createTopics}, 0)
	l.submitting.Wait()
	if err := h.drain(t.Context(), time.Time{}, 90*time.Second); err != nil {
		t.Error(err)
		unfollow()
	}
	l.following.Wait()
	h.settleDown(90 * time.Second)
	e := h.evidence(t.Context(), l, c)
	e.wiped = true
	e.check()
	h.checkDatabases(e)
	h.report(e)
	h.checkWiped(e)
	wiped := c.faults[len(c.faults)-1].to
	t.Logf("all had ended %s after the last wipe", e.lastEnd().Sub(wiped).Round(time.Millisecond))
	h.stopAll()
	e.summarize(t)
}

// checkWiped: most of what was said is gone, and something had to be said again.
func (h *house) checkWiped(e *evidence) {
	h.t.Helper()
	created, err := h.said(jobevent.TopicCreated)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(created) >= len(e.jobs)/2 {
		h.t.Errorf("%d of %d jobs are still on %s: it was not wiped", len(created), len(e.jobs), jobevent.TopicCreated)
	}
	again := 0
	for _, job := range e.jobs {
		for _, m := range job.History[:1] {
			if m.At.Sub(job.CreatedAt) > 9*time.Second {
				again++
			}
		}
	}
	h.t.Logf("%d jobs reached the scheduler only when they were said again", again)
}

// deleteTopics deletes everything there is.
func (h *house) deleteTopics() error {
	cfg, err := h.kafka().Sarama()
	if err != nil {
		return err
	}
	cfg.Metadata.Full = true // finding the controller is a question about no topic
	admin, err := sarama.NewClusterAdmin(h.brokers, cfg)
	if err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	defer func() { _ = admin.Close() }()
	for _, topic := range jobevent.Topics(nil) {
		if err := admin.DeleteTopic(topic.Name); err != nil {
			return fmt.Errorf("delete topic %s: %w", topic.Name, err)
		}
	}
	return nil
}

// lastEnd is when the last job ended.
func (e *evidence) lastEnd() (last time.Time) {
	for _, job := range e.jobs {
		if end := job.History[len(job.History)-1].At; end.After(last) {
			last = end
		}
	}
	return last
}
