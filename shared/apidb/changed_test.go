package apidb

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var filtered = Changed{
	Were: []jobstate.Status{jobstate.Running},
	Job: Job{
		JobID: uuid.New(), TraceID: uuid.New(), OwnerID: "acme", JobType: "OWN", Queue: "mail", Tags: []string{"a", "b"},
		CreatedAt: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), Status: jobstate.Failed, OrderingKey: "k", IdempotencyKey: "i",
		After:    []uuid.UUID{uuid.New()},
		Snapshot: jobevent.Status{LastError: &jobevent.Error{ErrorCode: "DEMO", Message: "no such thing"}},
	},
}

// Each filter of a list is one of what has changed, too: who adds a field says here which jobs it leaves out.
func TestEachFilterChoosesChangedJobs(t *testing.T) {
	t.Parallel()
	created, after := filtered.CreatedAt, filtered.CreatedAt.Add(time.Second)
	trace := uuid.New()
	first := filtered.After[0]
	tries := map[string]struct{ fits, doesNot Filter }{
		"Status":         {Filter{Status: []jobstate.Status{jobstate.Failed}}, Filter{Status: []jobstate.Status{jobstate.Pending}}},
		"JobType":        {Filter{JobType: "OWN"}, Filter{JobType: "OTHER"}},
		"Queue":          {Filter{Queue: "mail"}, Filter{Queue: "default"}},
		"Tag":            {Filter{Tag: "b"}, Filter{Tag: "c"}},
		"OrderingKey":    {Filter{OrderingKey: "k"}, Filter{OrderingKey: "l"}},
		"ErrorCode":      {Filter{ErrorCode: "DEMO"}, Filter{ErrorCode: "OTHER"}},
		"NoErrorCode":    {Filter{}, Filter{NoErrorCode: true}},
		"TraceID":        {Filter{TraceID: &filtered.TraceID}, Filter{TraceID: &trace}},
		"IdempotencyKey": {Filter{IdempotencyKey: "i"}, Filter{IdempotencyKey: "j"}},
		"After":          {Filter{After: &first}, Filter{After: &trace}},
		"Search":         {Filter{Search: "no SUCH"}, Filter{Search: "other"}},
		"OwnerID":        {Filter{OwnerID: "acme"}, Filter{OwnerID: "other"}},
		"Since":          {Filter{Since: &created}, Filter{Since: &after}},
		"Until":          {Filter{Until: &after}, Filter{Until: &created}},
	}
	pages := map[string]bool{"Before": true, "Skip": true, "Limit": true} // no filters of a stream
	for i := range reflect.TypeFor[Filter]().NumField() {
		field := reflect.TypeFor[Filter]().Field(i)
		name := field.Name
		try, known := tries[name]
		if !known && !pages[name] && field.IsExported() {
			t.Errorf("Fits does not know the filter %s", name)
		}
		if known && (!try.fits.Fits(Everyone, &filtered) || try.doesNot.Fits(Everyone, &filtered)) {
			t.Errorf("%s does not choose", name)
		}
	}
	if left := (&Filter{Status: []jobstate.Status{jobstate.Running}}); !left.Fits(Everyone, &filtered) {
		t.Error("a job that has left a list is not told to who follows it")
	}
	for _, search := range []string{"i", "DEMO", "b", filtered.JobID.String(), filtered.TraceID.String()} {
		if !(&Filter{Search: search}).Fits(Everyone, &filtered) {
			t.Errorf("it is not found by %s", search)
		}
	}
	for owner, sees := range map[Owner]bool{Everyone: true, OwnerOf("acme"): true, OwnerOf("other"): false, OwnerOf(""): false} {
		if all := (&Filter{}); all.Fits(owner, &filtered) != sees {
			t.Errorf("%+v sees it: %v", owner, !sees)
		}
	}
	if (&Filter{OwnerID: "acme"}).Fits(OwnerOf("other"), &filtered) {
		t.Error("an owner sees what is another's")
	}
}

func TestWhatAJobWasLatelyIsKnownFromItsMoves(t *testing.T) {
	t.Parallel()
	now := time.Now()
	job := &Job{Snapshot: jobevent.Status{History: []jobevent.Move{
		{At: now.Add(-time.Hour), To: "PENDING"},
		{At: now.Add(-time.Hour), From: "SCHEDULED", To: "PENDING"},
		{At: now.Add(-time.Second), From: "QUEUED", To: "RUNNING"},
		{At: now, From: "RUNNING", To: "COMPLETED"},
	}}}
	want := []jobstate.Status{jobstate.Pending, jobstate.Queued, jobstate.Running}
	if got := statusesBefore(job); !reflect.DeepEqual(got, want) {
		t.Errorf("it was %v, want %v", got, want)
	}
	if got := statusesBefore(&Job{}); len(got) > 0 {
		t.Errorf("a new job was %v", got)
	}
}

func TestATellingNamesItsJobs(t *testing.T) {
	t.Parallel()
	ids := make([]uuid.UUID, mostTold)
	for i := range ids {
		ids[i] = uuid.New()
	}
	var read []uuid.UUID
	for _, payload := range tellings(ChangeEnded, ids) {
		if len(payload) >= 8000 {
			t.Errorf("PostgreSQL refuses %d bytes", len(payload))
		}
		change := readTelling(payload)
		if change.Kind != ChangeEnded {
			t.Errorf("kind %c", change.Kind)
		}
		read = append(read, change.JobIDs...)
	}
	if !reflect.DeepEqual(read, ids) {
		t.Errorf("%d jobs of %d", len(read), len(ids))
	}
	if got := tellings(ChangeEnded, append(ids, uuid.New())); len(got) != 1 || readTelling(got[0]).Kind != ChangeMany {
		t.Errorf("of too many: %v", got)
	}
	if got := tellings(ChangeGone, append(ids, uuid.New())); len(got) != 3 {
		t.Errorf("of jobs that lists need not show any more: %d", len(got))
	}
	if got := tellings(ChangeEnded, nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
	for _, odd := range []string{"", "e$", "eAAAA", "é"} {
		if got := readTelling(odd); got.Kind != ChangeMany {
			t.Errorf("%q is %+v", odd, got)
		}
	}
	if got := readTelling(string(rune(ChangeBegins))); got.Kind != ChangeBegins || len(got.JobIDs) > 0 {
		t.Errorf("%+v", got)
	}
}
