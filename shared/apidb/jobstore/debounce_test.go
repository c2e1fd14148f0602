package jobstore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func debounced(owner, key, payload string, delay, most time.Duration) jobstore.NewJob {
	job := apidbtest.NewJob()
	job.Whose = apidb.Everyone
	job.Request.OwnerID, job.Request.Payload = owner, json.RawMessage(payload)
	job.Request.Debounce = &jobspec.Debounce{Key: key, DelayMs: delay.Milliseconds(), MaxDelayMs: most.Milliseconds()}
	return job
}

func (h *fixture) release(t *testing.T) jobstore.Released {
	t.Helper()
	released, err := h.Jobs.Release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return released
}

// heldJob is the model of a held job.
type heldJob struct {
	id         uuid.UUID
	payload    string
	first, due time.Duration
}

// The test makes time pass by making the jobs older, in steps of hours, so that no comparison is close.
func TestDebouncedJobsChangeAndAreReleasedAsThePlainModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h, r, now := open(t), rand.New(rand.NewPCG(seed, 2)), time.Duration(0)
			held, ready := map[string]*heldJob{}, map[uuid.UUID]string{}
			for n := range 120 {
				owner, key := []string{"", "acme"}[r.IntN(2)], string(rune('a'+r.IntN(2)))
				switch r.IntN(5) {
				case 0:
					now += time.Hour
					h.Exec(t, "update jobs set created_at = created_at - interval '1 hour', run_at = run_at - interval '1 hour'")
				case 1:
					for of, job := range held {
						if job.due < now {
							ready[job.id] = job.payload
							delete(held, of)
						}
					}
					for _, job := range h.release(t).Jobs {
						if want, some := ready[job.JobID]; !some || want != string(job.Payload) {
							t.Fatalf("released %s with %s, want %q", job.JobID, job.Payload, want)
						}
						delete(ready, job.JobID)
					}
					if len(ready) > 0 {
						t.Fatalf("not released: %v", ready)
					}
				case 2:
					if job := held[owner+key]; job != nil {
						h.command(t, job.id)
						ready[job.id] = job.payload
						delete(held, owner+key)
					}
				default:
					delay := time.Duration(r.IntN(3))*time.Hour + 30*time.Minute
					most := delay + time.Duration(r.IntN(3))*time.Hour + 15*time.Minute
					asked := debounced(owner, key, fmt.Sprint(n), delay, most)
					before := held[owner+key]
					got := h.Accept(t, asked)
					if before == nil {
						if !got.New() || got.JobID != asked.JobID {
							t.Fatalf("the first one: %+v", got)
						}
						held[owner+key] = &heldJob{id: got.JobID, payload: fmt.Sprint(n), first: now, due: now + delay}
						continue
					}
					if !got.Merged() || got.JobID != before.id || got.Status() != jobstate.Scheduled {
						t.Fatalf("a further one: %+v, want %s", got, before.id)
					}
					before.payload, before.due = fmt.Sprint(n), min(before.first+most, now+delay)
				}
			}
		})
	}
}

// command stores a command for a job.
func (h *fixture) command(t *testing.T, id uuid.UUID) {
	t.Helper()
	if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, id, jobevent.CommandCancel, "test"); err != nil {
		t.Fatal(err)
	}
}

// However requests and releases race, the job has the content of the request that was answered last, and no request is
// lost between its answer and the release.
func TestAHundredDebouncedSubmitsAtOnceLeaveOneJobWithTheLastContent(t *testing.T) {
	t.Parallel()
	h := open(t)
	var g errgroup.Group
	for i := range 100 {
		g.Go(func() error {
			jobs := []jobstore.NewJob{debounced("acme", "k", fmt.Sprint(i), time.Hour, time.Hour)}
			if i%3 == 0 { // several keys, in different orders
				other := debounced("acme", string(rune('a'+i%4)), `"other"`, time.Hour, time.Hour)
				jobs = []jobstore.NewJob{other, jobs[0]}
			}
			_, err := h.Jobs.InsertJobs(t.Context(), jobs)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	last := debounced("acme", "k", `"last"`, time.Hour, time.Hour)
	got := h.Accept(t, last)
	if n := apidbtest.One[int](t, h, "select count(*) from jobs where policies -> 'debounce' ->> 'key' = 'k'"); n != 1 || !got.Merged() {
		t.Fatalf("%d jobs, the last request: %+v", n, got)
	}
	h.Exec(t, "update jobs set run_at = now() where policies -> 'debounce' ->> 'key' = 'k'")
	released := h.release(t)
	if len(released.Jobs) != 1 || released.Jobs[0].JobID != got.JobID || string(released.Jobs[0].Payload) != `"last"` || released.Next < 50*time.Minute {
		t.Errorf("released %+v, next %s", released.Jobs, released.Next)
	}
	if again := h.release(t); len(again.Jobs) > 0 {
		t.Errorf("released twice: %+v", again.Jobs)
	}
}

// Each request that races with releases is either in the job that is released after it, or has a job of its own.
func TestNoDebouncedRequestIsLostWhileJobsAreReleased(t *testing.T) {
	t.Parallel()
	h := open(t)
	last := map[uuid.UUID]string{} // the content with which each job was released
	var answers [200]uuid.UUID
	done := make(chan struct{})
	var submits, releases errgroup.Group
	submits.Go(func() error {
		defer close(done)
		for i := range answers {
			accepted, err := h.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{debounced("", "k", fmt.Sprint(i), time.Millisecond, 20*time.Millisecond)})
			if err != nil {
				return err
			}
			answers[i] = accepted[0].JobID
		}
		return nil
	})
	release := func() error {
		released, err := h.Jobs.Release(t.Context())
		for _, job := range released.Jobs {
			if _, twice := last[job.JobID]; twice {
				return fmt.Errorf("job %s is released twice", job.JobID)
			}
			last[job.JobID] = string(job.Payload)
		}
		return err
	}
	releases.Go(func() error {
		for {
			if err := release(); err != nil {
				return err
			}
			select {
			case <-done:
				return nil
			default:
			}
		}
	})
	if err := submits.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := releases.Wait(); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "update jobs set run_at = now() where held")
	if err := release(); err != nil {
		t.Fatal(err)
	}
	newest := map[uuid.UUID]string{}
	for i, id := range answers {
		newest[id] = fmt.Sprint(i)
	}
	for id, want := range newest {
		if last[id] != want {
			t.Errorf("job %s was released with %s, its last request had %s", id, last[id], want)
		}
	}
	if len(newest) != len(last) {
		t.Errorf("%d jobs were answered, %d released", len(newest), len(last))
	}
}

func TestARepeatedRequestDoesNotChangeAHeldJobAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	keyed := func(key, payload string) jobstore.NewJob {
		job := debounced("acme", "k", payload, time.Hour, 2*time.Hour)
		job.Request.IdempotencyKey, job.RequestHash = key, []byte(payload)
		return job
	}
	event := debounced("acme", "k", `"event"`, time.Hour, 2*time.Hour)
	event.EventSource, event.EventID = "/shop", "1"
	first := h.Accept(t, keyed("1", "1"))
	h.Accept(t, keyed("2", "2"))
	h.Accept(t, event)
	h.Accept(t, keyed("3", "3"))
	repeats := []jobstore.NewJob{keyed("1", "1"), keyed("2", "2"), event, keyed("3", "3")}
	for i, repeat := range repeats {
		if got := h.Accept(t, repeat); !got.Replayed || got.Conflict || got.JobID != first.JobID || got.Merged() {
			t.Errorf("repeat %d: %+v", i, got)
		}
	}
	if got := h.Accept(t, keyed("2", "other")); !got.Conflict || got.JobID != first.JobID {
		t.Errorf("a key for another request: %+v", got)
	}
	if got := apidbtest.One[string](t, h, "select payload::text from jobs"); got != "3" {
		t.Errorf("the job has the payload %s", got)
	}
	batch := []jobstore.NewJob{keyed("4", "4"), keyed("4", "4"), keyed("2", "2"), keyed("5", "5")}
	accepted, err := h.Jobs.InsertJobs(t.Context(), batch)
	if err != nil || !accepted[0].Merged() || !accepted[1].Replayed || !accepted[2].Replayed || !accepted[3].Merged() {
		t.Fatalf("in a batch: %+v, %v", accepted, err)
	}
	if got := apidbtest.One[string](t, h, "select payload::text from jobs"); got != "5" {
		t.Errorf("after the batch the job has the payload %s", got)
	}
	h.Exec(t, "delete from jobs")
	if n := apidbtest.One[int](t, h, "select count(*) from merged_submits"); n != 0 {
		t.Errorf("%d requests are left of a deleted job", n)
	}
}

func TestDebouncedJobsOfOneBatchAreOneJobWithTheLastContent(t *testing.T) {
	t.Parallel()
	h := open(t)
	sealed := func(payload string) jobstore.NewJob {
		job := debounced("", "k", payload, time.Hour, time.Hour)
		job.SealFor = func(id uuid.UUID) json.RawMessage { return json.RawMessage(fmt.Sprintf("%q", id.String()+payload)) }
		job.Request.Payload = job.SealFor(job.JobID)
		return job
	}
	batch := []jobstore.NewJob{sealed("1"), sealed("2"), sealed("3")}
	accepted, err := h.Jobs.InsertJobs(t.Context(), batch)
	if err != nil || !accepted[0].New() || !accepted[1].Merged() || accepted[2].JobID != batch[0].JobID {
		t.Fatalf("%+v, %v", accepted, err)
	}
	want := fmt.Sprintf("%q", batch[0].JobID.String()+"3")
	if got := apidbtest.One[string](t, h, "select payload::text from jobs"); got != want {
		t.Errorf("the job has the payload %s, want %s", got, want)
	}
	h.Accept(t, sealed("4"))
	if got := apidbtest.One[string](t, h, "select payload::text from jobs"); got != fmt.Sprintf("%q", batch[0].JobID.String()+"4") {
		t.Errorf("later it has the payload %s", got)
	}
}

func TestARequestWithAnotherTurnDoesNotChangeAHeldJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	single := func(key string) jobstore.NewJob {
		job := debounced("", "k", "1", time.Hour, time.Hour)
		job.Request.Singleton = &jobspec.Singleton{Key: key, Else: jobspec.SingletonQueue}
		return job
	}
	if first, got := h.Accept(t, single("s")), h.Accept(t, single("s")); !got.Merged() || first.OrderNumber == 0 {
		t.Errorf("the same turn: %+v", got)
	}
	if got := h.Accept(t, single("other")); got.Late == nil || got.JobID != uuid.Nil {
		t.Errorf("another turn: %+v", got)
	}
}

// Reconcile does not publish a held job, and one that was released and lost is published again like any other.
func TestAHeldJobThatIsJustDueDoesNotWaitForManyOfAnotherOwner(t *testing.T) {
	t.Parallel()
	h := open(t)
	var noisy []jobstore.NewJob
	for i := range 250 {
		noisy = append(noisy, debounced("noisy", strconv.Itoa(i), "1", time.Hour, time.Hour))
	}
	if _, err := h.Jobs.InsertJobs(t.Context(), noisy); err != nil {
		t.Fatal(err)
	}
	quiet := h.Accept(t, debounced("quiet", "k", "1", 2*time.Hour, 2*time.Hour))
	h.Exec(t, "update jobs set created_at = created_at - interval '3 hours', run_at = run_at - interval '3 hours'")
	released, all := h.release(t), 0
	if !slices.ContainsFunc(released.Jobs, func(job jobevent.Created) bool { return job.JobID == quiet.JobID }) {
		t.Error("the first release leaves it out")
	}
	for all += len(released.Jobs); released.More; all += len(released.Jobs) {
		released = h.release(t)
	}
	if all != 251 {
		t.Errorf("%d jobs were released", all)
	}
}

func TestReconcilePublishesADebouncedJobOnlyAfterItsRelease(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, debounced("", "k", "1", time.Hour, 2*time.Hour))
	h.Exec(t, "update jobs set created_at = created_at - interval '90 minutes'")
	unconfirmed := func() int {
		t.Helper()
		now := time.Now()
		found, err := h.Statuses.UnconfirmedJobs(t.Context(), apidb.Page{Since: now.Add(-time.Hour), Until: now.Add(time.Minute), Limit: 10}, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := unconfirmed(); n != 0 {
		t.Errorf("%d jobs are published while they are held", n)
	}
	h.command(t, job.JobID)
	if n := unconfirmed(); n != 0 {
		t.Errorf("%d jobs are published before their release", n)
	}
	released := h.release(t)
	if len(released.Jobs) != 1 || len(released.Commands) != 1 || released.Commands[0].Command != jobevent.CommandCancel {
		t.Errorf("released %+v", released)
	}
	if n := unconfirmed(); n != 1 {
		t.Errorf("%d jobs are published again after a loss", n)
	}
	if got := h.Accept(t, debounced("", "k", "2", time.Hour, time.Hour)); !got.New() {
		t.Errorf("after the release: %+v", got)
	}
}
