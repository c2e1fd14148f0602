package jobstore_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func ordered(key string) jobstore.NewJob {
	job := apidbtest.NewJob()
	job.Request.OrderingKey = key
	return job
}

func after(ids ...uuid.UUID) jobstore.NewJob {
	job := apidbtest.NewJob()
	job.Request.After = ids
	return job
}

// place is the place of a job in the order of its key.
type place struct {
	id     uuid.UUID
	number int64
	before *uuid.UUID
}

// line returns the places of a key in their order.
func (h *fixture) line(t *testing.T, key string) (places []place) {
	t.Helper()
	h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "select job_id, order_number, order_after from jobs where ordering_key = $1 order by order_number", key)
		if err != nil {
			return err
		}
		var p place
		_, err = pgx.ForEachRow(rows, []any{&p.id, &p.number, &p.before}, func() error {
			places = append(places, p)
			return nil
		})
		return err
	})
	return places
}

// wantLine checks that each job comes after the job before it, and the first after none.
func (h *fixture) wantLine(t *testing.T, key string, jobs int) []place {
	t.Helper()
	places := h.line(t, key)
	if len(places) != jobs {
		t.Errorf("%d jobs of key %s, want %d", len(places), key, jobs)
	}
	for i, p := range places {
		switch {
		case i == 0 && p.before != nil:
			t.Errorf("the first of key %s comes after %s", key, p.before)
		case i > 0 && p.number <= places[i-1].number:
			t.Errorf("two of key %s have the number %d", key, p.number)
		case i > 0 && (p.before == nil || *p.before != places[i-1].id):
			t.Errorf("number %d of key %s comes after %v, want %s", i, key, p.before, places[i-1].id)
		}
	}
	return places
}

func TestRareFieldsAreStoredAndRepublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, second := h.Accept(t, apidbtest.NewJob()).JobID, h.Accept(t, ordered("k")).JobID
	expiresAt := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	asks := map[string]func(*jobstore.NewJob){
		"to expire":            func(j *jobstore.NewJob) { j.Request.ExpiresAt = &expiresAt },
		"an order":             func(j *jobstore.NewJob) { j.Request.OrderingKey = "k" },
		"a fairness key":       func(j *jobstore.NewJob) { j.Request.OwnerID, j.Request.FairnessKey = "acme", "f" },
		"to come after others": func(j *jobstore.NewJob) { j.Request.After = []uuid.UUID{second, first} },
		"to come after others in some way, with their outputs": func(j *jobstore.NewJob) {
			j.Request.After, j.Request.Conditions = []uuid.UUID{second, first}, []jobstate.Condition{jobstate.WhenFailed, jobstate.WhenEnded}
			j.Request.Inputs = []jobevent.Input{{Name: "first", JobID: first}}
		},
		"all": func(j *jobstore.NewJob) {
			j.Request.ExpiresAt, j.Request.OrderingKey, j.Request.Delay = &expiresAt, "k", time.Minute
			j.Request.After, j.Request.RunAnyway, j.Request.Tags = []uuid.UUID{first}, true, []string{`a"b`}
		},
	}
	published := map[uuid.UUID]string{}
	for name, ask := range asks {
		for kind, job := range map[string]jobstore.NewJob{"plain": apidbtest.NewJob(), "keyed": apidbtest.Keyed(name, "body")} {
			ask(&job)
			accepted := h.Accept(t, job)
			got, req := h.ReadJob(t, job.JobID), job.Request
			if got.FairnessKey != cmp.Or(req.FairnessKey, req.OwnerID) || got.OrderingKey != req.OrderingKey || !slices.Equal(got.After, req.After) || got.RunAnyway != req.RunAnyway || !slices.Equal(got.Conditions, req.Conditions) ||
				(got.ExpiresAt == nil) != (req.ExpiresAt == nil) || req.ExpiresAt != nil && !got.ExpiresAt.Equal(*req.ExpiresAt) ||
				got.HasAfter != (len(req.After) > 0) || fmt.Sprint(got.Tags) != fmt.Sprint(req.Tags) || got.Status != accepted.Status() {
				t.Errorf("%s, %s: got %+v", name, kind, got)
			}
			if (accepted.OrderNumber > 0) != (req.OrderingKey != "") || (accepted.OrderAfter != nil) != (req.OrderingKey != "") {
				t.Errorf("%s, %s: accepted as %+v", name, kind, accepted)
			}
			created := accepted.Created(job)
			created.CreatedAt = time.Time{}
			published[job.JobID] = asJSON(t, created)
		}
	}
	h.Exec(t, "update jobs set created_at = now() - interval '15 s'")
	now, err := h.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.Statuses.UnconfirmedJobs(t.Context(), apidb.Page{Since: now.Add(-10 * time.Second), Until: now, Limit: 100}, 10*time.Second)
	if err != nil || len(again) != len(published)+2 {
		t.Fatalf("published again: %d, %v", len(again), err)
	}
	for _, job := range again {
		job.CreatedAt = time.Time{}
		if want := published[job.JobID]; want != "" && asJSON(t, job) != want {
			t.Errorf("published\n%s and again\n%s", want, asJSON(t, job))
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestABatchOfOneKeyKeepsTheOrderOfTheRequest(t *testing.T) {
	t.Parallel()
	h := open(t)
	head := h.Accept(t, ordered("k"))
	known := apidbtest.Keyed("known", "body")
	h.Accept(t, known)
	jobs := make([]jobstore.NewJob, 100)
	var want []uuid.UUID
	for i := range jobs {
		switch {
		case i%10 == 3: // of another key
			jobs[i] = ordered("other")
		case i%10 == 5: // these idempotency keys sort in the reverse order
			jobs[i] = apidbtest.Keyed(fmt.Sprintf("%03d", 999-i), "body")
			jobs[i].Request.OrderingKey = "k"
		case i%10 == 6: // repeats the previous job
			jobs[i] = apidbtest.Keyed(fmt.Sprintf("%03d", 999-i+1), "body")
			jobs[i].Request.OrderingKey = "k"
			continue
		case i == 47:
			jobs[i] = apidbtest.Keyed("known", "body")
			jobs[i].Request.OrderingKey = "k"
			continue
		case i == 48:
			jobs[i] = apidbtest.NewJob()
			continue
		default:
			jobs[i] = ordered("k")
		}
		if i%10 != 3 {
			want = append(want, jobs[i].JobID)
		}
	}
	accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	places := h.wantLine(t, "k", len(want)+1)
	h.wantLine(t, "other", 10)
	if places[0].id != head.JobID {
		t.Errorf("the head of the line is %s", places[0].id)
	}
	for i, id := range want {
		if places[i+1].id != id {
			t.Fatalf("place %d is that of %s, want %s", i+1, places[i+1].id, id)
		}
	}
	for i, a := range accepted {
		if repeats := i%10 == 6 || i == 47; a.Replayed != repeats || repeats && (a.OrderNumber != 0 || a.OrderAfter != nil) {
			t.Errorf("job %d: %+v", i, a)
		}
	}
	if accepted[6].JobID != jobs[5].JobID || accepted[47].JobID != known.JobID {
		t.Errorf("repeats of %s and %s", accepted[6].JobID, accepted[47].JobID)
	}
}

func TestWhoComesAfterAJobThatHasEndedWaitsForNone(t *testing.T) {
	t.Parallel()
	h := open(t)
	jobs := []jobstore.NewJob{ordered("k"), ordered("k"), ordered("k")}
	if _, err := h.Jobs.InsertJobs(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	ends := func(job jobstore.NewJob, status jobstate.Status) { h.Apply(t, apidbtest.Status(job.JobID, 1, status)) }
	ends(jobs[2], jobstate.Cancelled)
	if a := h.Accept(t, ordered("k")); a.OrderAfter == nil || *a.OrderAfter != jobs[1].JobID {
		t.Errorf("after the second: %+v", a)
	} else {
		h.Apply(t, apidbtest.Status(a.JobID, 1, jobstate.Failed))
	}
	ends(jobs[1], jobstate.Completed)
	if a := h.Accept(t, ordered("k")); a.OrderAfter == nil || *a.OrderAfter != jobs[0].JobID {
		t.Errorf("after the first: %+v", a)
	} else {
		h.Apply(t, apidbtest.Status(a.JobID, 1, jobstate.Completed))
	}
	ends(jobs[0], jobstate.Completed)
	if a := h.Accept(t, ordered("k")); a.OrderAfter != nil {
		t.Errorf("after all: %+v", a)
	}
	elsewhere := ordered("k")
	elsewhere.Request.OwnerID = "acme"
	if a := h.Accept(t, elsewhere); a.OrderAfter != nil {
		t.Errorf("another owner's: %+v", a)
	}
}

// Eight submitters each send their requests one after another. If one request was answered before another was sent, its
// jobs stand before the other's.
func TestPlacesAreInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	h := open(t)
	mine := make([][]uuid.UUID, 8)
	var g errgroup.Group
	for i := range mine {
		g.Go(func() error {
			for range 25 {
				jobs := []jobstore.NewJob{ordered("k"), ordered(fmt.Sprint("k", rand.N(3))), ordered("k")}
				if rand.N(2) == 0 { // with the keys in another order
					jobs = []jobstore.NewJob{ordered(fmt.Sprint("k", rand.N(3))), ordered("k"), ordered(fmt.Sprint("k", rand.N(3)))}
				}
				if _, err := h.Jobs.InsertJobs(t.Context(), jobs); err != nil {
					return err
				}
				for _, job := range jobs {
					if job.Request.OrderingKey == "k" {
						mine[i] = append(mine[i], job.JobID)
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	at := map[uuid.UUID]int{}
	for i, p := range h.wantLine(t, "k", len(slices.Concat(mine...))) {
		at[p.id] = i
	}
	for i, ids := range mine {
		if !slices.IsSortedFunc(ids, func(a, b uuid.UUID) int { return at[a] - at[b] }) {
			t.Errorf("submits of %d do not stand in their order", i)
		}
	}
	for n := range 3 {
		key := fmt.Sprint("k", n)
		h.wantLine(t, key, len(h.line(t, key)))
	}
}

func TestAHundredEqualSubmitsHaveOnePlace(t *testing.T) {
	t.Parallel()
	h := open(t)
	submits := func(i int) []jobstore.NewJob {
		same := apidbtest.Keyed("same", "body")
		same.Request.OrderingKey = "k"
		switch i % 4 {
		case 0:
			return []jobstore.NewJob{same}
		case 1: // the repeated job stands between other jobs of the key
			return []jobstore.NewJob{same, ordered("k"), same, ordered("k")}
		case 2: // another request with the same idempotency key and no ordering key, so that it waits for no lock
			return []jobstore.NewJob{apidbtest.Keyed("same", "other body")}
		default:
			same.EventSource, same.EventID = "/shop", fmt.Sprint(i%8)
			return []jobstore.NewJob{ordered("k"), same}
		}
	}
	var g errgroup.Group
	answers := make([]jobstore.Accepted, 100)
	for i := range answers {
		g.Go(func() error {
			jobs := submits(i)
			accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(jobs, func(j jobstore.NewJob) bool { return j.Request.IdempotencyKey != "" })
			answers[i] = accepted[at]
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	fresh := 0
	for i, a := range answers {
		if a.JobID != answers[0].JobID {
			t.Fatalf("submit %d is job %s, want %s", i, a.JobID, answers[0].JobID)
		}
		if !a.Replayed {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d were the first", fresh)
	}
	inLine := 25*2 + 25
	if apidbtest.One[string](t, h, "select coalesce(ordering_key, '') from jobs where idempotency_key = 'same'") == "k" {
		inLine++
	}
	h.wantLine(t, "k", inLine)
}

func TestAJobComesOnlyAfterJobsOfItsOwner(t *testing.T) {
	t.Parallel()
	h := open(t)
	theirs := apidbtest.NewJob()
	theirs.Request.OwnerID = "acme"
	mine, gone := h.Accept(t, apidbtest.NewJob()).JobID, uuid.Must(uuid.NewV7())
	h.Accept(t, theirs)
	owned := after(mine, theirs.JobID)
	owned.Request.OwnerID = "acme"
	good := after(mine)
	bad := after(mine, gone, theirs.JobID)
	bad.Request.OrderingKey = "k"
	tail := ordered("k")
	accepted, err := h.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{apidbtest.NewJob(), bad, owned, good, tail, after(make([]uuid.UUID, 100)...)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int{nil, {1, 2}, {0}, nil, nil, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}} {
		if !slices.Equal(accepted[i].Missing, want) {
			t.Errorf("job %d: missing %v, want %v", i, accepted[i].Missing, want)
		}
	}
	if accepted[4].OrderAfter != nil {
		t.Error("a refused job has a place in the order")
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 2+3 {
		t.Errorf("%d jobs", n)
	}
	missing := (*jobstore.MissingError)(nil)
	if _, err := h.Jobs.InsertAllJobs(t.Context(), []jobstore.NewJob{apidbtest.NewJob(), bad}); !errors.As(err, &missing) || missing.Job != 1 ||
		!slices.Equal(missing.At, []int{1, 2}) {
		t.Errorf("all or nothing: %v", err)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 2+3 {
		t.Errorf("%d jobs after a refused batch", n)
	}
}

func TestARepeatedSubmitDoesNotAskForItsDependenciesAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.Accept(t, apidbtest.NewJob())
	asked := func() jobstore.NewJob {
		job := apidbtest.Keyed("k", "body")
		job.Request.After = []uuid.UUID{first.JobID}
		return job
	}
	accepted := h.Accept(t, asked())
	h.Exec(t, "delete from jobs where job_id = $1", first.JobID)
	if again := h.Accept(t, asked()); !again.Replayed || again.Missing != nil || again.JobID != accepted.JobID {
		t.Errorf("again: %+v", again)
	}
	if got := h.ReadJob(t, accepted.JobID); len(got.BlockedBy) != 0 {
		t.Errorf("it waits for what is gone: %v", got.BlockedBy)
	}
}

func TestTenThousandDependencies(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []uuid.UUID
	for range 10 {
		jobs := make([]jobstore.NewJob, 1000)
		for i := range jobs {
			jobs[i] = apidbtest.NewJob()
			ids = append(ids, jobs[i].JobID)
		}
		if _, err := h.Jobs.InsertJobs(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
	}
	fanIn := h.Accept(t, after(ids...))
	if got := h.ReadJob(t, fanIn.JobID); !slices.Equal(got.After, ids) || len(got.BlockedBy) != 20 {
		t.Errorf("it comes after %d jobs and waits for %d", len(got.After), len(got.BlockedBy))
	}
	h.Exec(t, "update jobs set status = 'COMPLETED', version = 1, snapshot = '{}' where job_id <> $1 and job_id <> $2", fanIn.JobID, ids[5000])
	if got := h.ReadJob(t, fanIn.JobID); len(got.BlockedBy) != 1 || got.BlockedBy[0].ID != ids[5000].String() {
		t.Errorf("it waits for %v", got.BlockedBy)
	}
}
