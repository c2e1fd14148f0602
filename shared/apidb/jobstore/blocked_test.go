package jobstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestAWaitingJobShowsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	h := open(t)
	a, b := h.Accept(t, apidbtest.NewJob()).JobID, h.Accept(t, apidbtest.NewJob()).JobID
	ready := h.Accept(t, apidbtest.NewJob()).JobID
	head, next := h.Accept(t, ordered("k")).JobID, h.Accept(t, ordered("k")).JobID
	both := after(a, b)
	both.Request.OrderingKey = "k"
	tied := h.Accept(t, both).JobID
	anyway := after(a, b)
	anyway.Request.RunAnyway = true
	last := h.Accept(t, anyway).JobID
	want := func(when string, id uuid.UUID, blocks ...string) {
		t.Helper()
		show := func(job jobstore.Job) string {
			var texts []string
			for _, block := range job.BlockedBy {
				texts = append(texts, block.Kind+" "+block.ID)
			}
			slices.Sort(texts)
			return fmt.Sprint(texts)
		}
		slices.Sort(blocks)
		if got := show(h.ReadJob(t, id)); got != fmt.Sprint(blocks) {
			t.Errorf("%s: it waits for %s, want %s", when, got, blocks)
		}
		for _, filter := range []jobstore.Filter{{Limit: 100}, {Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Pending}}, Limit: 100}} {
			jobs, _, err := h.Jobs.ListJobs(t.Context(), apidb.Everyone, filter)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(jobs, func(job jobstore.Job) bool { return job.JobID == id })
			if at >= 0 && show(jobs[at]) != fmt.Sprint(blocks) {
				t.Errorf("%s: in a list it waits for %s, want %s", when, show(jobs[at]), blocks)
			}
		}
	}
	onA, onB, inLine := "dependency "+a.String(), "dependency "+b.String(), "order k"
	want("a plain job", ready)
	want("the first of its key", head)
	want("the second of its key", next, inLine)
	want("all at once", tied, onA, onB, inLine)
	want("either way", last, onA, onB)
	h.Apply(t, apidbtest.Status(a, 1, jobstate.Completed), apidbtest.Status(b, 1, jobstate.Retrying), apidbtest.Status(head, 1, jobstate.Running))
	want("one has completed", tied, onB, inLine)
	h.Apply(t, apidbtest.Status(b, 2, jobstate.Failed), apidbtest.Status(head, 2, jobstate.Cancelled))
	want("one has failed", tied, onB, inLine)
	want("one has failed, and it runs anyway", last)
	want("the first has ended", next)
	h.Apply(t, apidbtest.Status(next, 1, jobstate.Completed))
	want("the order is kept", tied, onB)
	h.Apply(t, apidbtest.Status(tied, 1, jobstate.Cancelled))
	want("an ended job waits for nothing", tied)
}

func TestAListOfAnOrderingKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	var want []uuid.UUID
	for i := range 6 {
		job := ordered(fmt.Sprint("k", i%2))
		if h.Accept(t, job); i%2 == 1 {
			want = slices.Insert(want, 0, job.JobID)
		}
		h.Accept(t, apidbtest.NewJob())
	}
	h.Apply(t, apidbtest.Status(want[2], 1, jobstate.Completed))
	for _, c := range []struct {
		status []jobstate.Status
		want   []uuid.UUID
	}{
		{nil, want},
		{[]jobstate.Status{jobstate.Pending}, want[:2]},
		{[]jobstate.Status{jobstate.Completed}, want[2:]},
		{[]jobstate.Status{jobstate.Completed, jobstate.Pending}, want},
	} {
		jobs, next, err := h.Jobs.ListJobs(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k1", Status: c.status}, Limit: 100})
		var got []uuid.UUID
		for _, job := range jobs {
			got = append(got, job.JobID)
		}
		if err != nil || next != uuid.Nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.status, got, err, c.want)
		}
	}
}

// A pause shows at once on the jobs that it blocks, and disappears at once when it ends.
func TestAPauseShowsAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	for _, paused := range []bool{false, true, false, true} {
		if _, err := h.Controls.ChangeControl(t.Context(), nil, apidb.Everyone, jobevent.ControlQueue, "default", "me", nil,
			func(c *jobevent.Control) { c.Paused = paused }); err != nil {
			t.Fatal(err)
		}
		if blocked := len(h.ReadJob(t, id).BlockedBy) > 0; blocked != paused {
			t.Errorf("paused: %t, shown: %t", paused, blocked)
		}
	}
}
