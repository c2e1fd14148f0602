package kill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// wipedWithin is how long after a wipe every job must have ended. After a minute without a status reconcile asks
// about a job, in passes that are ten seconds apart.
const wipedWithin = 90 * time.Second

// TestEveryJobEndsThoughTheBrokerLosesItsData wipes the broker twice while jobs are in flight: first all topics are
// deleted while all functions run, then the broker restarts on an empty disk after the functions were stopped one
// after another, so that every topic holds unread records.
func TestEveryJobEndsThoughTheBrokerLosesItsData(t *testing.T) {
	duration(t)
	t.Parallel()
	rnd := newRand(t)
	h := open(t, 2)
	follow, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	l, c := newLoad(follow, h, rnd), &chaos{fixture: h, rnd: rnd}
	submitting, stopSubmitting := context.WithCancel(t.Context())
	defer stopSubmitting()
	l.run(submitting)

	pause(submitting, 5*time.Second)
	c.kill(target{name: "all topics", kill: h.deleteTopics, restart: h.createTopics}, 0)
	pause(submitting, 5*time.Second)
	failNow := l.holdFailures(submitting)
	// Each function leaves records unread. Without outcomes the room for attempts is soon used up, so the workers
	// stop soon after the function that reads outcomes.
	gone := h.targetsNamed("projection", "command", "outcome", "runjob-1", "runjob-2", "ingest")
	for i, stays := range []time.Duration{time.Second, 500 * time.Millisecond, 0, 0, time.Second, time.Second} {
		must(t, gone[i].kill())
		if gone[i].name == "outcome" {
			failed, completed := h.ends(t)
			failNow()
			h.awaitEnds(submitting, t, failed, completed)
		}
		pause(submitting, stays)
	}
	t.Logf("unread when the broker's disk is wiped: %v", h.unread(t))
	emptied := func(context.Context) error { return errors.Join(os.RemoveAll(h.brokerDir()), h.broker.start()) }
	c.kill(target{name: "broker's disk", kill: h.broker.kill, restart: emptied}, 500*time.Millisecond)
	for _, g := range gone {
		must(t, g.restart(submitting))
	}
	stopSubmitting()
	l.submitting.Wait()
	if err := h.drain(t.Context(), time.Time{}, wipedWithin); err != nil {
		t.Error(err)
		unfollow()
	}
	l.following.Wait()
	h.settleDown(wipedWithin)
	e := h.evidence(t.Context(), l, c)
	e.wiped = true
	e.check()
	h.checkDatabases(e)
	h.report(e)
	wiped := c.faults[len(c.faults)-1].to
	t.Logf("all had ended %s after the last wipe", e.lastEnd().Sub(wiped).Round(time.Millisecond))
	h.stopAll()
	e.summarize(t)
}

// holdFailures runs one or more attempts that fail once failNow is called.
func (l *load) holdFailures(ctx context.Context) (failNow func()) {
	l.fixture.t.Helper()
	file := filepath.Join(l.fixture.dir, "fail-now")
	s := &shape{
		name: "fails on demand", payload: works(0, 0, "until", file, "failAttempts", 1),
		request: retries(5, 100, 300), ends: one(completed),
	}
	orders := l.submitMany(l.rnd(), s, 4)
	must(l.fixture.t, within(ctx, wipedWithin, func(ctx context.Context) error {
		for _, o := range orders {
			if job, err := l.fixture.api.Get(ctx, o.id, 0); err != nil || job.Status == "RUNNING" {
				return err
			}
		}
		return errors.New("no attempt that is to fail runs")
	}))
	return func() { must(l.fixture.t, os.WriteFile(file, nil, 0o600)) }
}

// awaitEnds waits until more attempts have failed and more have completed than before, without outcome, which is
// stopped. A few seconds later no attempt is left to end.
func (h *fixture) awaitEnds(ctx context.Context, t *testing.T, failed, completed int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); pause(ctx, 50*time.Millisecond) {
		if f, c := h.ends(t); f > failed && c > completed {
			return
		}
	}
}

// ends counts the failed and the completed attempts on the topics.
func (h *fixture) ends(t *testing.T) (failed, completed int) {
	t.Helper()
	published, err := h.published(outcomeTopics...)
	if err != nil {
		t.Fatal(err)
	}
	for id := range published {
		switch {
		case strings.HasSuffix(id, "."+string(jobevent.KindFailed)):
			failed++
		case strings.HasSuffix(id, "."+string(jobstate.KindCompleted)):
			completed++
		}
	}
	return failed, completed
}

// unread counts the unread records by group: a wipe of nothing proves nothing.
func (h *fixture) unread(t *testing.T) map[string]int64 {
	t.Helper()
	lags := map[string]int64{}
	for group, topics := range map[string][]string{
		"jobweaver-ingest": {jobevent.TopicCreated}, "jobweaver-runjob-default": {jobevent.TopicRun},
		"jobweaver-outcome": outcomeTopics, "jobweaver-command": {jobevent.TopicCommand},
		"jobweaver-projection": {jobevent.TopicStatus},
	} {
		lag, err := h.lag(group, topics...)
		if err != nil {
			t.Fatal(err)
		}
		if lags[group] = lag; lag == 0 {
			t.Errorf("%s has read all of %v before the wipe", group, topics)
		}
	}
	return lags
}

// deleteTopics deletes all topics.
func (h *fixture) deleteTopics() error {
	admin, err := h.admin()
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

// lastEnd returns when the last job ended.
func (e *evidence) lastEnd() (last time.Time) {
	for _, job := range e.jobs {
		if end := job.History[len(job.History)-1].At; end.After(last) {
			last = end
		}
	}
	return last
}
