package schedulerdb

import (
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// Every event about a known job republishes all events of its current state, the status last.
func TestARedeliveryRepublishesTheWholeCurrentState(t *testing.T) {
	const (
		run, cancel, dead, status = jobevent.TypeRun, jobevent.TypeAttemptCancel, jobevent.TypeDeadLettered, jobevent.TypeStatus
		again                     = "its creation, redelivered"
	)
	for name, c := range map[string]struct {
		become func(h fixture, job jobevent.Created)
		want   []string
	}{
		"queued": {func(fixture, jobevent.Created) {}, []string{run, status}},
		"queued, cancel asked": {func(h fixture, job jobevent.Created) {
			h.order(job, 1, jobevent.CommandCancel)
		}, []string{run, cancel, status}},
		"running": {func(h fixture, job jobevent.Created) { h.start(job) }, []string{status}},
		"running, cancel asked": {func(h fixture, job jobevent.Created) {
			h.start(job)
			h.order(job, 1, jobevent.CommandCancel)
		}, []string{cancel, status}},
		"waiting":   {func(h fixture, job jobevent.Created) { h.settle(waiting(job)) }, []string{status}},
		"retrying":  {func(h fixture, job jobevent.Created) { h.settle(ended(job, 1, jobstate.KindFailed)) }, []string{status}},
		"scheduled": {func(h fixture, job jobevent.Created) { h.settle(snoozed(job)) }, []string{status}},
		"queued again": {func(h fixture, job jobevent.Created) {
			h.settle(ended(job, 1, jobstate.KindInterrupted))
		}, []string{run, status}},
		"completed": {func(h fixture, job jobevent.Created) { h.settle(completed(job, 1)) }, []string{status}},
		"cancelled": {func(h fixture, job jobevent.Created) { h.settle(ended(job, 1, jobstate.KindCancelled)) }, []string{status}},
		"failed": {func(h fixture, job jobevent.Created) {
			o := ended(job, 1, jobstate.KindFailed)
			o.Retryable = false
			h.settle(o)
		}, []string{dead, status}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			job := newJob()
			h.ingest(job)
			c.become(h, job)
			reported := h.report(job, 0)
			number := 0
			if s := h.status(job); s.LastCommand != nil {
				number = s.LastCommand.Number
			}
			for by, events := range map[string][]jobevent.Item{
				"a report":                    reported,
				again:                         h.events(h.ingest(job)),
				"an outcome of attempt 0":     h.events(h.settle(completed(job, 0))),
				"a command, answered already": h.events(h.order(job, number, jobevent.CommandCancel)),
			} {
				want, names := c.want, each(reported, jobevent.Item.ID)
				if by == again && want[0] == run {
					want, names = want[1:], names[1:] // only the watchdog repeats the run order
				}
				if got := each(events, jobevent.Item.Type); !slices.Equal(got, want) {
					t.Errorf("%s returned %v, want %v", by, got, want)
				}
				if !slices.Equal(each(events, jobevent.Item.ID), names) {
					t.Errorf("%s returned events with other ids", by)
				}
				if order, _ := jobevent.Decode[jobevent.Run](events[0]); order.Cancel != (slices.Contains(want, cancel) && want[0] == run) {
					t.Errorf("%s returned a run order with cancel %t", by, order.Cancel)
				}
			}
		})
	}
}

func (h fixture) start(job jobevent.Created) {
	h.Helper()
	now := time.Now()
	h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1, StartedAt: &now})
}

func (h fixture) events(effects emit.Effects) []jobevent.Item {
	h.Helper()
	events, err := effects.Events("test")
	if err != nil {
		h.Fatal(err)
	}
	return events
}

func waiting(job jobevent.Created) Outcome {
	o := ended(job, 1, jobstate.KindWaiting)
	o.CallbackTimeout = time.Minute
	return o
}

func snoozed(job jobevent.Created) Outcome {
	o := ended(job, 1, jobstate.KindSnoozed)
	o.RetryAfter = time.Minute
	return o
}

func each(events []jobevent.Item, of func(jobevent.Item) string) []string {
	texts := make([]string, len(events))
	for i, e := range events {
		texts[i] = of(e)
	}
	return texts
}
