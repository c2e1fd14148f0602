package jobstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// plainAndKeyed returns a job for each insert statement: one that cannot conflict, and one with a key.
func plainAndKeyed() map[string]jobstore.NewJob {
	return map[string]jobstore.NewJob{"plain": apidbtest.NewJob(), "keyed": apidbtest.Keyed("key", "body")}
}

func TestAJobComesBackAsItWasAsked(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, in := range plainAndKeyed() {
		in.Request.Tags = []string{`a"b`, `c\d`, "e,f {g}", "ü", "null"}
		in.Request.Priority, in.Request.OwnerID = 7, "acme"
		in.Request.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.List, DelaysMs: []int64{1, 2}}
		in.Request.Payload = json.RawMessage("{ \"steps\" :  [] }")
		accepted := h.Accept(t, in)
		if accepted.Status() != jobstate.Pending || accepted.Replayed || accepted.JobID != in.JobID {
			t.Errorf("%s: accepted as %+v", name, accepted)
		}
		got := h.ReadJob(t, in.JobID)
		if fmt.Sprint(got.Tags) != fmt.Sprint(in.Request.Tags) || got.Priority != 7 || got.OwnerID != "acme" ||
			string(got.Payload) != string(in.Request.Payload) || got.Status != jobstate.Pending || got.Version != 0 ||
			got.TraceID != in.TraceID || got.RunAt != nil || !got.CreatedAt.Equal(accepted.CreatedAt) {
			t.Errorf("%s: got %+v", name, got)
		}
		if spec := apidbtest.One[string](t, h, "select spec::text from jobs where job_id = $1", in.JobID); spec != string(in.Request.Bytes()) {
			t.Errorf("%s: spec %s", name, spec)
		}
	}
	if _, err := h.Jobs.Job(t.Context(), apidb.Everyone, uuid.New()); !errors.Is(err, apidb.ErrNoJob) {
		t.Errorf("unknown job: %v", err)
	}
}

func TestALaterTimeMakesAJobScheduled(t *testing.T) {
	t.Parallel()
	for name, job := range plainAndKeyed() {
		h := open(t)
		key := job.Request.IdempotencyKey
		asked := func(n string, change func(*jobstore.NewJob)) jobstore.Accepted {
			job.JobID = uuid.Must(uuid.NewV7())
			if key != "" {
				job.Request.IdempotencyKey = key + n
			}
			changed := job
			change(&changed)
			a := h.Accept(t, changed)
			if got := h.ReadJob(t, a.JobID); got.Status != a.Status() || (got.RunAt == nil) != (a.RunAt == nil) ||
				a.RunAt != nil && !got.RunAt.Equal(*a.RunAt) || !got.CreatedAt.Equal(a.CreatedAt) {
				t.Errorf("%s: stored as %+v, answered %+v", name, got, a)
			}
			return a
		}
		runAt := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
		past := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
		if a := asked("1", func(j *jobstore.NewJob) { j.Request.RunAt = &runAt }); a.Status() != jobstate.Scheduled || !a.RunAt.Equal(runAt) {
			t.Errorf("%s, runAt: %+v", name, a)
		}
		if a := asked("2", func(j *jobstore.NewJob) { j.Request.RunAt = &past }); a.Status() != jobstate.Pending || !a.RunAt.Equal(past) {
			t.Errorf("%s, a time that has passed: %+v", name, a)
		}
		if a := asked("3", func(j *jobstore.NewJob) { j.Request.Delay = time.Minute }); a.Status() != jobstate.Scheduled ||
			a.RunAt.Sub(a.CreatedAt) != time.Minute {
			t.Errorf("%s, delay: %+v", name, a)
		}
	}
}

func TestJobsOfABatchKeepWhatIsTheirs(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, odd := range map[string]func(*jobstore.NewJob){
		"alike":           func(*jobstore.NewJob) {},
		"another owner":   func(j *jobstore.NewJob) { j.Request.OwnerID = "acme" },
		"another type":    func(j *jobstore.NewJob) { j.Request.JobType = "EMAIL" },
		"another queue":   func(j *jobstore.NewJob) { j.Request.Queue = "other" },
		"other tags":      func(j *jobstore.NewJob) { j.Request.Tags = []string{"a"} },
		"another trace":   func(j *jobstore.NewJob) { j.TraceID = uuid.New() },
		"another rank":    func(j *jobstore.NewJob) { j.Request.Priority = 9 },
		"other retries":   func(j *jobstore.NewJob) { j.Request.MaxRetryCount = 0 },
		"a delay":         func(j *jobstore.NewJob) { j.Request.Delay = time.Hour },
		"another timeout": func(j *jobstore.NewJob) { j.Request.TimeoutMs = 1000 },
	} {
		trace := uuid.New()
		jobs := make([]jobstore.NewJob, 3)
		for i := range jobs {
			jobs[i] = apidbtest.NewJob()
			jobs[i].TraceID = trace
			jobs[i].Request.Payload = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		}
		odd(&jobs[1])
		accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
		if err != nil {
			t.Fatal(name, err)
		}
		for i, job := range jobs {
			got, req := h.ReadJob(t, accepted[i].JobID), job.Request
			if got.JobID != job.JobID || string(got.Payload) != string(req.Payload) || got.OwnerID != req.OwnerID ||
				got.JobType != req.JobType || got.Queue != req.Queue || fmt.Sprint(got.Tags) != fmt.Sprint(req.Tags) ||
				got.TraceID != job.TraceID || got.Priority != req.Priority || got.MaxRetryCount != req.MaxRetryCount ||
				(got.Status == jobstate.Scheduled) != (req.Delay > 0) {
				t.Errorf("%s: job %d is %+v, asked for %+v", name, i, got, job)
			}
			if ms := apidbtest.One[int64](t, h, "select (spec ->> 'timeoutMs')::bigint from jobs where job_id = $1", job.JobID); ms != req.TimeoutMs {
				t.Errorf("%s: job %d may take %d ms", name, i, ms)
			}
		}
	}
}

func TestTheSameKeyIsTheSameJobOrAConflict(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.Accept(t, apidbtest.Keyed("k", "body"))
	if again := h.Accept(t, apidbtest.Keyed("k", "body")); !again.Replayed || again.Conflict || again.JobID != first.JobID ||
		again.TraceID != first.TraceID || again.Status() != first.Status() {
		t.Errorf("again: %+v", again)
	}
	if other := h.Accept(t, apidbtest.Keyed("k", "another body")); !other.Conflict || other.JobID != first.JobID {
		t.Errorf("another body: %+v", other)
	}
	elsewhere := apidbtest.Keyed("k", "another body")
	elsewhere.Request.OwnerID = "acme"
	if a := h.Accept(t, elsewhere); a.Replayed {
		t.Errorf("another owner's key: %+v", a)
	}
}

func TestTheSameEventIsTheSameJobWhateverItsData(t *testing.T) {
	t.Parallel()
	h := open(t)
	event := func(id, owner, key, body string) jobstore.NewJob {
		job := apidbtest.Keyed(key, body)
		job.Request.OwnerID, job.EventSource, job.EventID = owner, "/shop", id
		return job
	}
	first := h.Accept(t, event("1", "", "", ""))
	second := h.Accept(t, event("2", "", "k", "body"))
	for name, c := range map[string]struct {
		job      jobstore.NewJob
		want     uuid.UUID
		conflict bool
	}{
		"another owner":                   {event("1", "acme", "", ""), first.JobID, false},
		"with a key":                      {event("1", "", "fresh", "body"), first.JobID, false},
		"with another job's key":          {event("1", "", "k", "other"), first.JobID, false},
		"another event with the key":      {event("3", "", "k", "body"), second.JobID, false},
		"another event that abuses a key": {event("4", "", "k", "other"), second.JobID, true},
	} {
		if got := h.Accept(t, c.job); !got.Replayed || got.JobID != c.want || got.Conflict != c.conflict {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 2 {
		t.Errorf("%d jobs", n)
	}
}

func TestDuplicatesInsideABatchAreOneJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	jobs := []jobstore.NewJob{apidbtest.NewJob(), apidbtest.Keyed("b", "1"), apidbtest.Keyed("a", "1"), apidbtest.Keyed("b", "1"), apidbtest.Keyed("b", "2"), apidbtest.NewJob()}
	got, err := h.Jobs.InsertJobs(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	if got[3].JobID != got[1].JobID || !got[3].Replayed || got[3].Conflict || !got[4].Conflict || got[1].Replayed {
		t.Errorf("got %+v", got)
	}
	for _, i := range []int{0, 1, 2, 5} {
		if got[i].JobID != jobs[i].JobID {
			t.Errorf("answer %d is of another job", i)
		}
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 4 {
		t.Errorf("%d jobs", n)
	}
}

func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Accept(t, apidbtest.Keyed("k", "1"))
	if _, err := h.Jobs.InsertAllJobs(t.Context(), []jobstore.NewJob{apidbtest.NewJob(), apidbtest.Keyed("k", "2")}); !errors.Is(err, apidb.ErrConflict) {
		t.Fatalf("conflict: %v", err)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 1 {
		t.Errorf("%d jobs after a refused batch", n)
	}
	if _, err := h.Jobs.InsertAllJobs(t.Context(), []jobstore.NewJob{apidbtest.NewJob(), apidbtest.Keyed("k", "1")}); err != nil {
		t.Error(err)
	}
}

func TestAHundredEqualSubmitsAtOnceMakeOneJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := make([]uuid.UUID, 100)
	var g errgroup.Group
	for i := range ids {
		g.Go(func() error {
			jobs := []jobstore.NewJob{apidbtest.Keyed("same", "body")}
			if i%2 == 1 { // in batches that have the keys in different orders
				jobs = []jobstore.NewJob{apidbtest.Keyed(fmt.Sprint(i%7), "x"), apidbtest.Keyed("same", "body"), apidbtest.Keyed(fmt.Sprint(i%5), "x")}
			}
			accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
			if err == nil {
				ids[i] = accepted[i%2].JobID
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("jobs %s and %s", id, ids[0])
		}
	}
}

func TestAThousandJobsInOneStatement(t *testing.T) {
	t.Parallel()
	h := open(t)
	jobs := make([]jobstore.NewJob, 1000)
	for i := range jobs {
		jobs[i] = apidbtest.NewJob()
	}
	accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range accepted {
		if a.JobID != jobs[i].JobID {
			t.Fatalf("answer %d is of another job", i)
		}
	}
	if n := apidbtest.One[int](t, h, "select count(distinct xmin::text) from jobs"); n != 1 {
		t.Errorf("%d transactions", n)
	}
}
