package jobstore_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var filtered = jobstore.Changed{
	Were:    []jobstate.Status{jobstate.Running},
	EndedAt: new(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)),
	Job: jobstore.Job{
		JobID: uuid.New(), TraceID: uuid.New(), OwnerID: "acme", JobType: "OWN", Queue: "mail", Tags: []string{"a", "b"},
		CreatedAt: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), Status: jobstate.Failed, OrderingKey: "k", IdempotencyKey: "i",
		After: []uuid.UUID{uuid.New()}, BatchID: new(uuid.New()), Element: &jobspec.Element{FanOut: uuid.New()},
		Snapshot: jobevent.Status{LastError: &jobevent.Error{ErrorCode: "DEMO", Message: "no such thing"}},
	},
}

// Each filter of a list also filters changes: a new field needs a line here with the jobs that it excludes.
func TestEachFilterChoosesChangedJobs(t *testing.T) {
	t.Parallel()
	created, after := filtered.CreatedAt, filtered.CreatedAt.Add(time.Second)
	ended, afterEnd := *filtered.EndedAt, filtered.EndedAt.Add(time.Second)
	trace := uuid.New()
	first := filtered.After[0]
	tries := map[string]struct{ fits, doesNot jobstore.Filter }{
		"Status":         {jobstore.Filter{Status: []jobstate.Status{jobstate.Failed}}, jobstore.Filter{Status: []jobstate.Status{jobstate.Pending}}},
		"JobType":        {jobstore.Filter{JobType: "OWN"}, jobstore.Filter{JobType: "OTHER"}},
		"Queue":          {jobstore.Filter{Queue: "mail"}, jobstore.Filter{Queue: "default"}},
		"Tag":            {jobstore.Filter{Tag: "b"}, jobstore.Filter{Tag: "c"}},
		"OrderingKey":    {jobstore.Filter{OrderingKey: "k"}, jobstore.Filter{OrderingKey: "l"}},
		"ErrorCode":      {jobstore.Filter{ErrorCode: "DEMO"}, jobstore.Filter{ErrorCode: "OTHER"}},
		"NoErrorCode":    {jobstore.Filter{}, jobstore.Filter{NoErrorCode: true}},
		"TraceID":        {jobstore.Filter{TraceID: &filtered.TraceID}, jobstore.Filter{TraceID: &trace}},
		"IdempotencyKey": {jobstore.Filter{IdempotencyKey: "i"}, jobstore.Filter{IdempotencyKey: "j"}},
		"After":          {jobstore.Filter{After: &first}, jobstore.Filter{After: &trace}},
		"BatchID":        {jobstore.Filter{BatchID: filtered.BatchID}, jobstore.Filter{BatchID: &trace}},
		"FanOutID":       {jobstore.Filter{FanOutID: &filtered.Element.FanOut}, jobstore.Filter{FanOutID: &trace}},
		"Search":         {jobstore.Filter{Search: "no SUCH"}, jobstore.Filter{Search: "other"}},
		"OwnerID":        {jobstore.Filter{OwnerID: "acme"}, jobstore.Filter{OwnerID: "other"}},
		"Since":          {jobstore.Filter{Since: &created}, jobstore.Filter{Since: &after}},
		"Until":          {jobstore.Filter{Until: &after}, jobstore.Filter{Until: &created}},
		"EndedSince":     {jobstore.Filter{EndedSince: &ended}, jobstore.Filter{EndedSince: &afterEnd}},
		"EndedUntil":     {jobstore.Filter{EndedUntil: &afterEnd}, jobstore.Filter{EndedUntil: &ended}},
	}
	pages := map[string]bool{"Before": true, "Skip": true, "Limit": true, "Event": true} // streams do not have these filters
	for i := range reflect.TypeFor[jobstore.Filter]().NumField() {
		field := reflect.TypeFor[jobstore.Filter]().Field(i)
		name := field.Name
		try, known := tries[name]
		if !known && !pages[name] && field.IsExported() {
			t.Errorf("Fits does not know the filter %s", name)
		}
		if known && (!try.fits.Fits(apidb.Everyone, &filtered) || try.doesNot.Fits(apidb.Everyone, &filtered)) {
			t.Errorf("%s does not choose", name)
		}
	}
	if left := (&jobstore.Filter{Status: []jobstate.Status{jobstate.Running}}); !left.Fits(apidb.Everyone, &filtered) {
		t.Error("a client that follows a list is not notified of a job that left it")
	}
	for _, search := range []string{"i", "DEMO", "b", filtered.JobID.String(), filtered.TraceID.String()} {
		if !(&jobstore.Filter{Search: search}).Fits(apidb.Everyone, &filtered) {
			t.Errorf("it is not found by %s", search)
		}
	}
	for owner, sees := range map[apidb.Owner]bool{apidb.Everyone: true, apidb.OwnerOf("acme"): true, apidb.OwnerOf("other"): false, apidb.OwnerOf(""): false} {
		if all := (&jobstore.Filter{}); all.Fits(owner, &filtered) != sees {
			t.Errorf("%+v sees it: %v", owner, !sees)
		}
	}
	if (&jobstore.Filter{OwnerID: "acme"}).Fits(apidb.OwnerOf("other"), &filtered) {
		t.Error("an owner sees what is another's")
	}
}

func TestWhatAJobWasLatelyIsKnownFromItsMoves(t *testing.T) {
	t.Parallel()
	now := time.Now()
	job := &jobstore.Job{Snapshot: jobevent.Status{History: []jobevent.Transition{
		{At: now.Add(-time.Hour), To: "PENDING"},
		{At: now.Add(-time.Hour), From: "SCHEDULED", To: "PENDING"},
		{At: now.Add(-time.Second), From: "QUEUED", To: "RUNNING"},
		{At: now, From: "RUNNING", To: "COMPLETED"},
	}}}
	want := []jobstate.Status{jobstate.Pending, jobstate.Queued, jobstate.Running}
	if got := jobstore.StatusesBefore(job); !reflect.DeepEqual(got, want) {
		t.Errorf("it was %v, want %v", got, want)
	}
	if got := jobstore.StatusesBefore(&jobstore.Job{}); len(got) > 0 {
		t.Errorf("a new job was %v", got)
	}
}

func TestAStreamOfJobsByTheirEndHasThoseThatARetryTakesFromIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := time.Now().Add(-time.Second)
	retried := func(s *jobevent.Status) {
		s.History = []jobevent.Transition{{At: at, To: "RUNNING"}, {At: at, From: "RUNNING", To: "FAILED"}, {At: at.Add(time.Second), From: "FAILED", To: "PENDING"}}
	}
	for name, c := range map[string]struct {
		status jobstate.Status
		change func(*jobevent.Status)
		since  time.Time
		fits   bool
	}{
		"a job that ended":                  {jobstate.Failed, func(s *jobevent.Status) { s.FinishedAt, s.UpdatedAt = &at, time.Now() }, at, true},
		"one that ended before":             {jobstate.Failed, func(s *jobevent.Status) { s.FinishedAt, s.UpdatedAt = &at, time.Now() }, at.Add(time.Millisecond), false},
		"one that is retried":               {jobstate.Pending, retried, at, true},
		"one that is retried, ended before": {jobstate.Pending, retried, at.Add(time.Millisecond), false},
		"one that runs":                     {jobstate.Running, func(*jobevent.Status) {}, at, false},
	} {
		id := h.Accept(t, apidbtest.NewJob()).JobID
		h.Apply(t, apidbtest.Status(id, 1, c.status, c.change))
		changed, _, err := h.Jobs.ChangedJobs(t.Context(), []uuid.UUID{id})
		if err != nil || len(changed) != 1 {
			t.Fatal(changed, err)
		}
		since := c.since.Truncate(time.Microsecond)
		if fits := (&jobstore.Filter{EndedSince: &since}).Fits(apidb.Everyone, &changed[0]); fits != c.fits {
			t.Errorf("%s fits: %v", name, fits)
		}
	}
}
