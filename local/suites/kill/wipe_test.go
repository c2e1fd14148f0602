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
	"github.com/jobweaver/jobweaver/shared/retry"
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

	retry.Pause(submitting, 5*time.Second)
	c.kill(target{name: "all topics", kill: h.deleteTopics, restart: h.createTopics}, 0)
	retry.Pause(submitting, 5*time.Second)
	// Each function leaves records unread.
	gone := h.targetsNamed("projection", "command", "outcome", "runjob-1", "runjob-2", "ingest")
	beyond := filepath.Join(h.dir, "beyond the wipe")
	for _, g := range gone {
		endNow := func() error { return nil }
		if g.name == "outcome" { // without it the room for attempts is soon used up
			endNow = l.holdEnds(submitting, beyond)
		}
		must(t, g.kill())
		must(t, endNow())
		must(t, within(submitting, recoverWithin, func(context.Context) error { return h.isBehind(g.name) }))
	}
	t.Logf("unread when the broker's disk is wiped: %v", h.unread(t))
	emptied := func(context.Context) error { return errors.Join(os.RemoveAll(h.brokerDir()), h.broker.start()) }
	c.kill(target{name: "broker's disk", kill: h.broker.kill, restart: emptied}, 500*time.Millisecond)
	must(t, os.WriteFile(beyond, nil, 0o600))
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

// holdEnds runs attempts that last until the file beyond exists, so that the workers do not commit their records yet.
// Others fail or complete once endNow is called, which returns when one of each has ended.
func (l *load) holdEnds(ctx context.Context, beyond string) (endNow func() error) {
	l.fixture.t.Helper()
	file := filepath.Join(l.fixture.dir, "end now")
	for _, s := range []*shape{
		{name: "fails on demand", payload: works(0, 0, "until", file, "failAttempts", 1), request: retries(5, 100, 300)},
		{name: "completes on demand", payload: works(0, 0, "until", file)},
		{name: "lasts beyond the wipe", payload: works(0, 0, "until", beyond)},
	} {
		s.ends = one(completed)
		orders := l.submitMany(l.rnd(), s, 2)
		must(l.fixture.t, within(ctx, recoverWithin, func(context.Context) error {
			begun, err := l.fixture.begunBy(orders)
			if err == nil && len(begun) == 0 {
				err = fmt.Errorf("no job begins that %s", s.name)
			}
			return err
		}))
	}
	return func() error {
		failed, completed, err := l.fixture.ends()
		if err := errors.Join(err, os.WriteFile(file, nil, 0o600)); err != nil {
			return err
		}
		return within(ctx, recoverWithin, func(context.Context) error {
			f, c, err := l.fixture.ends()
			if err == nil && (f == failed || c == completed) {
				err = fmt.Errorf("%d attempts have failed and %d have completed", f-failed, c-completed)
			}
			return err
		})
	}
}

// ends counts the failed and the completed attempts on the topics.
func (h *fixture) ends() (failed, completed int, err error) {
	published, err := h.published(jobevent.TopicEnded)
	for id := range published {
		switch {
		case strings.HasSuffix(id, "."+string(jobevent.KindFailed)):
			failed++
		case strings.HasSuffix(id, "."+string(jobstate.KindCompleted)):
			completed++
		}
	}
	return failed, completed, err
}

// reads are the consumer groups of functions that are stopped before a wipe, and their topics.
var reads = map[string]struct {
	group  string
	topics []string
}{
	"ingest": {"jobweaver-ingest", []string{jobevent.TopicCreated}}, "outcome": {"jobweaver-outcome", []string{jobevent.TopicEnded}},
	"runjob-1":   {"jobweaver-runjob-default", []string{jobevent.TopicRun}},
	"runjob-2":   {"jobweaver-runjob-default", []string{jobevent.TopicRun}},
	"command":    {"jobweaver-command", []string{jobevent.TopicCommand}},
	"projection": {"jobweaver-projection", []string{jobevent.TopicStatus}},
}

// isBehind returns an error until a function has unread records.
func (h *fixture) isBehind(function string) error {
	lag, err := h.lag(reads[function].group, reads[function].topics...)
	if err == nil && lag == 0 {
		err = fmt.Errorf("%s has read all of %v", function, reads[function].topics)
	}
	return err
}

// unread counts the unread records by group: a wipe of nothing proves nothing.
func (h *fixture) unread(t *testing.T) map[string]int64 {
	t.Helper()
	lags := map[string]int64{}
	for _, r := range reads {
		lag, err := h.lag(r.group, r.topics...)
		if err != nil {
			t.Fatal(err)
		}
		if lags[r.group] = lag; lag == 0 {
			t.Errorf("%s has read all of %v before the wipe", r.group, r.topics)
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
