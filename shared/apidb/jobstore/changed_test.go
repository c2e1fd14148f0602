package jobstore_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var filtered = jobstore.Changed{
	Were: []jobstate.Status{jobstate.Running},
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
	}
	pages := map[string]bool{"Before": true, "Skip": true, "Limit": true} // streams do not have these filters
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
	job := &jobstore.Job{Snapshot: jobevent.Status{History: []jobevent.Move{
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
