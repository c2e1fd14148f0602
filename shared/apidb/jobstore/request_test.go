package jobstore_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

func TestWhatAJobAskedForIsReadAsItWas(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	plain, all := apidbtest.NewJob(), apidbtest.NewJob()
	all.RequestHash = []byte("hash")
	all.Request = jobspec.Request{
		JobType: "MAIL", Payload: json.RawMessage(`{"b": 1.50, "a": [ ]}`), Spec: jobevent.Spec{MaxRetryCount: 0, Priority: 9, TimeoutMs: (time.Second).Milliseconds(), RetryPolicy: &retrypolicy.Policy{Type: retrypolicy.List, DelaysMs: []int64{0, 5}, Jitter: 0.5}}, Queue: "mail", RunAt: &later,
		IdempotencyKey: "k", Tags: []string{"x", "a,b"}, OwnerID: "acme", ExpiresAt: &later,
		OrderingKey: "o", FairnessKey: "f",
		RunAnyway:   true,
		CallbackURL: "https://example.org/", RunAgainOf: uuid.New(),
	}
	all.JobID = s.NewID()
	before := apidbtest.NewJob()
	before.JobID, before.Request.OwnerID = s.NewID(), "acme"
	all.Request.After = []uuid.UUID{before.JobID}
	for _, job := range []jobstore.NewJob{plain, before, all} {
		if _, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job}); err != nil {
			t.Fatal(err)
		}
	}
	for _, job := range []jobstore.NewJob{plain, all} {
		got, command, err := s.Jobs.Request(t.Context(), apidb.Everyone, job.JobID)
		if got.RunAt != nil {
			at, expires := got.RunAt.UTC(), got.ExpiresAt.UTC()
			got.RunAt, got.ExpiresAt = &at, &expires
		}
		if len(got.Tags) == 0 {
			got.Tags = job.Request.Tags
		}
		if want := job.Request; err != nil || command != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v, %v", got, want, err)
		}
	}
	if _, _, err := s.Jobs.Request(t.Context(), apidb.OwnerOf("other"), all.JobID); err == nil {
		t.Error("another owner reads it")
	}
}

// The newest job that repeats another job is found by its index alone, and only for its owner.
func TestTheNewestRunOfAJobIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	s, plans := watched(t)
	fillOwned(t, s, 40_000, 2)
	old := apidbtest.NewJob()
	old.JobID, old.Request.OwnerID = s.NewID(), "acme"
	newest := map[string]uuid.UUID{}
	jobs := []jobstore.NewJob{old}
	for _, owner := range []string{"acme", "acme", "other"} {
		job := apidbtest.NewJob()
		job.JobID, job.Request.OwnerID, job.Request.RunAgainOf = s.NewID(), owner, old.JobID
		newest[owner] = job.JobID
		jobs = append(jobs, job)
	}
	for _, job := range jobs {
		if _, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job}); err != nil {
			t.Fatal(err)
		}
	}
	for owner, want := range map[apidb.Owner]uuid.UUID{apidb.OwnerOf("acme"): newest["acme"], apidb.Everyone: newest["other"]} {
		plans.Forget()
		job, err := s.Jobs.Job(t.Context(), owner, old.JobID)
		if err != nil || job.RunAgainAs == nil || *job.RunAgainAs != want {
			t.Errorf("it runs again as %v, %v, want %s", job.RunAgainAs, err, want)
		}
		visitsFew(t, "a job that was run again", plans)
	}
	if job, err := s.Jobs.Job(t.Context(), apidb.Everyone, newest["acme"]); err != nil || job.RunAgainAs != nil || job.RunAgainOf != old.JobID {
		t.Errorf("the new job is %+v, %v", job, err)
	}
}
