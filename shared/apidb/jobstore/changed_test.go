package jobstore_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var filtered = jobstore.Changed{
	Were:     []jobstate.Status{jobstate.Running},
	Payloads: []string{"order.id:17"},
	EndedAt:  new(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)),
	Job: jobstore.Job{
		Request: jobspec.Request{
			OwnerID: "acme", JobType: "OWN", Queue: "mail", Tags: []string{"a", "b"}, OrderingKey: "k", IdempotencyKey: "i",
			After: []uuid.UUID{uuid.New()}, BatchID: uuid.New(), Element: &jobspec.Element{FanOut: uuid.New()},
		},
		JobID: uuid.New(), TraceID: uuid.New(), CreatedAt: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), Status: jobstate.Failed,
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
	tries := map[string]struct{ fits, doesNot apibody.Filter }{
		"Status":         {apibody.Filter{Status: []jobstate.Status{jobstate.Failed}}, apibody.Filter{Status: []jobstate.Status{jobstate.Pending}}},
		"JobType":        {apibody.Filter{JobType: "OWN"}, apibody.Filter{JobType: "OTHER"}},
		"Queue":          {apibody.Filter{Queue: "mail"}, apibody.Filter{Queue: "default"}},
		"Tag":            {apibody.Filter{Tag: "b"}, apibody.Filter{Tag: "c"}},
		"OrderingKey":    {apibody.Filter{OrderingKey: "k"}, apibody.Filter{OrderingKey: "l"}},
		"ErrorCode":      {apibody.Filter{ErrorCode: "DEMO"}, apibody.Filter{ErrorCode: "OTHER"}},
		"NoErrorCode":    {apibody.Filter{}, apibody.Filter{NoErrorCode: true}},
		"Payload":        {apibody.Filter{Payload: "order.id:17"}, apibody.Filter{Payload: "order.id:18"}},
		"TraceID":        {apibody.Filter{TraceID: &filtered.TraceID}, apibody.Filter{TraceID: &trace}},
		"IdempotencyKey": {apibody.Filter{IdempotencyKey: "i"}, apibody.Filter{IdempotencyKey: "j"}},
		"After":          {apibody.Filter{After: &first}, apibody.Filter{After: &trace}},
		"BatchID":        {apibody.Filter{BatchID: &filtered.BatchID}, apibody.Filter{BatchID: &trace}},
		"FanOutID":       {apibody.Filter{FanOutID: &filtered.Element.FanOut}, apibody.Filter{FanOutID: &trace}},
		"Search":         {apibody.Filter{Search: "no SUCH"}, apibody.Filter{Search: "other"}},
		"OwnerID":        {apibody.Filter{OwnerID: "acme"}, apibody.Filter{OwnerID: "other"}},
		"Since":          {apibody.Filter{Since: &created}, apibody.Filter{Since: &after}},
		"Until":          {apibody.Filter{Until: &after}, apibody.Filter{Until: &created}},
		"EndedSince":     {apibody.Filter{EndedSince: &ended}, apibody.Filter{EndedSince: &afterEnd}},
		"EndedUntil":     {apibody.Filter{EndedUntil: &afterEnd}, apibody.Filter{EndedUntil: &ended}},
	}
	for field := range reflect.TypeFor[apibody.Filter]().Fields() {
		try, known := tries[field.Name]
		if !known && field.Name != "All" { // which excludes nothing
			t.Errorf("Fits does not know the filter %s", field.Name)
		}
		fits, doesNot := jobstore.Filter{Filter: try.fits}, jobstore.Filter{Filter: try.doesNot}
		if known && (!fits.Fits(apidb.Everyone, &filtered) || doesNot.Fits(apidb.Everyone, &filtered)) {
			t.Errorf("%s does not choose", field.Name)
		}
	}
	alone, none := filtered, uuid.Nil
	if alone.BatchID = none; (&jobstore.Filter{Filter: apibody.Filter{BatchID: &none}}).Fits(apidb.Everyone, &alone) {
		t.Error("a job without a batch is in one")
	}
	if left := (&jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Running}}}); !left.Fits(apidb.Everyone, &filtered) {
		t.Error("a client that follows a list is not notified of a job that left it")
	}
	for _, search := range []string{"i", "DEMO", "b", filtered.JobID.String(), filtered.TraceID.String()} {
		if !(&jobstore.Filter{Filter: apibody.Filter{Search: search}}).Fits(apidb.Everyone, &filtered) {
			t.Errorf("it is not found by %s", search)
		}
	}
	for owner, sees := range map[apidb.Owner]bool{apidb.Everyone: true, apidb.OwnerOf("acme"): true, apidb.OwnerOf("other"): false, apidb.OwnerOf(""): false} {
		if all := (&jobstore.Filter{}); all.Fits(owner, &filtered) != sees {
			t.Errorf("%+v sees it: %v", owner, !sees)
		}
	}
	if (&jobstore.Filter{Filter: apibody.Filter{OwnerID: "acme"}}).Fits(apidb.OwnerOf("other"), &filtered) {
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
		if fits := (&jobstore.Filter{Filter: apibody.Filter{EndedSince: &since}}).Fits(apidb.Everyone, &changed[0]); fits != c.fits {
			t.Errorf("%s fits: %v", name, fits)
		}
	}
}
