package batchstore_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// modelBatch is a batch as the documentation describes it.
type modelBatch struct {
	id               uuid.UUID
	jobs             map[uuid.UUID]jobstate.Status // without the deleted ones
	deleted          batchstore.Counts
	closed, expired  bool
	finished         batchstore.Status // empty: it has not ended
	counts           batchstore.Counts // at its end
	follows          bool              // it has jobs that follow it
	ends             int
	followed, failed int // jobs onComplete and onFailure
}

func (m *modelBatch) count() batchstore.Counts {
	if m.finished != "" {
		return m.counts
	}
	counts := batchstore.NoJobs()
	for state, n := range m.deleted {
		counts[state] += n
	}
	for _, state := range m.jobs {
		counts[state]++
	}
	return counts
}

// sweep ends the batch if it is closed and each job has ended.
func (m *modelBatch) sweep() {
	if !m.closed || m.finished != "" {
		return
	}
	counts := m.count()
	if counts.Ended() < counts.Total() {
		return
	}
	m.finished, m.counts, m.ends = batchstore.Completed, counts, m.ends+1
	switch {
	case m.expired:
		m.finished = batchstore.Expired
	case counts[jobstate.Failed] > 0:
		m.finished = batchstore.Failed
	case counts[jobstate.Cancelled] > 0:
		m.finished = batchstore.Cancelled
	}
	switch {
	case !m.follows:
	case m.finished == batchstore.Completed:
		m.followed++
	default:
		m.failed++
	}
}

func (m *modelBatch) retry() (refused bool) {
	if m.finished == batchstore.Completed {
		return true
	}
	if m.finished != "" {
		m.finished, m.expired = "", false
	}
	for id, state := range m.jobs {
		if state == jobstate.Failed || state == jobstate.Cancelled {
			m.jobs[id] = jobstate.Pending
		}
	}
	return false
}

// cancel cancels all jobs that have not ended, or those that do not run.
func (m *modelBatch) cancel(running bool) {
	m.closed = true
	for id, state := range m.jobs {
		if !state.Terminal() && (running || state != jobstate.Running) {
			m.jobs[id] = jobstate.Cancelled
		}
	}
}

func TestBatchesFollowTheModel(t *testing.T) {
	t.Parallel()
	f := open(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	batches := make([]*modelBatch, 4)
	for i := range batches {
		m := &modelBatch{jobs: map[uuid.UUID]jobstate.Status{}, deleted: batchstore.Counts{}, follows: i > 0}
		req := apibody.Batch{}
		if m.follows {
			req.OnComplete, req.OnFailure = json.RawMessage(onComplete), json.RawMessage(onFailure)
		}
		var ids []uuid.UUID
		m.id, ids = f.create(t, req, random.IntN(3))
		for _, id := range ids {
			m.jobs[id] = jobstate.Pending
		}
		batches[i] = m
	}
	for range 250 {
		m := batches[random.IntN(len(batches))]
		f.step(t, m, random)
		f.compare(t, m)
	}
	for _, m := range batches {
		f.compare(t, m)
	}
}

func (f fixture) step(t *testing.T, m *modelBatch, random *rand.Rand) {
	t.Helper()
	job, state := m.any(random)
	switch n := random.IntN(100); {
	case n < 20:
		id, taken := f.add(t, m.id)
		if taken == m.closed {
			t.Fatalf("batch %s took a job: %v, closed: %v", m.id, taken, m.closed)
		}
		if taken {
			m.jobs[id] = jobstate.Pending
		}
	case n < 55 && job != uuid.Nil && !state.Terminal():
		next := []jobstate.Status{jobstate.Running, jobstate.Completed, jobstate.Completed, jobstate.Failed, jobstate.Cancelled}
		m.jobs[job] = next[random.IntN(len(next))]
		f.become(t, job, m.jobs[job])
	case n < 60 && (state == jobstate.Failed || state == jobstate.Cancelled): // one job is retried by hand
		m.jobs[job] = jobstate.Pending
		f.become(t, job, jobstate.Pending)
	case n < 65 && job != uuid.Nil && state.Terminal():
		if m.finished == "" {
			m.deleted[state]++
		}
		delete(m.jobs, job)
		version := f.ReadJob(t, job).Version
		if _, err := f.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: job, Version: version + 1}}); err != nil {
			t.Fatal(err)
		}
	case n < 70:
		m.closed = true
		if _, err := f.Batches.Close(t.Context(), nil, apidb.Everyone, m.id); err != nil {
			t.Fatal(err)
		}
	case n < 73 && m.finished == "" && !m.expired:
		m.expired = true
		f.Exec(t, "update batches set expires_at = now() where batch_id = $1", m.id)
		f.sweep(t) // expires it, unless it ends
		if counts := m.count(); m.closed && counts.Ended() == counts.Total() {
			m.expired = false
			break
		}
		m.closed = true
		f.sweep(t)
		f.operate(t)
		m.cancel(false)
	case n < 76:
		refused := m.finished != ""
		_, err := f.Batches.Cancel(t.Context(), nil, apidb.Everyone, m.id, "me")
		checkRefusal(t, err, refused)
		if !refused {
			f.operate(t)
			m.cancel(true)
		}
	case n < 80:
		_, err := f.Batches.Retry(t.Context(), nil, apidb.Everyone, m.id, "me")
		f.sweep(t) // does not end it before the operation has
		f.operate(t)
		checkRefusal(t, err, m.retry())
	}
	f.sweep(t)
	if m.expired { // what a retry by hand brought back is cancelled again
		f.operate(t)
		if m.finished == "" {
			m.cancel(false)
		}
		f.sweep(t)
	}
	m.sweep()
}

func checkRefusal(t *testing.T, err error, refused bool) {
	t.Helper()
	var public *apierror.Error
	if is := errors.As(err, &public) && public.Code == apierror.InvalidStateTransition; is != refused || err != nil && !is {
		t.Fatalf("refused: %v, but the error is %v", refused, err)
	}
}

func (m *modelBatch) any(random *rand.Rand) (uuid.UUID, jobstate.Status) {
	if len(m.jobs) == 0 {
		return uuid.Nil, ""
	}
	var ids []uuid.UUID
	for id := range m.jobs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	id := ids[random.IntN(len(ids))]
	return id, m.jobs[id]
}

func (f fixture) compare(t *testing.T, m *modelBatch) {
	t.Helper()
	got, want := f.batch(t, m.id), m.count()
	status := m.finished
	switch {
	case status != "":
	case m.closed:
		status = batchstore.Running
	default:
		status = batchstore.Open
	}
	if got.Status != status {
		t.Fatalf("batch %s is %s, not %s; it has %v", m.id, got.Status, status, want)
	}
	for _, state := range jobstate.All() {
		if got.Counts[state] != want[state] {
			t.Fatalf("batch %s, which is %s, has %v, not %v", m.id, status, got.Counts, want)
		}
	}
	for jobType, want := range map[string]int{"done": m.followed, "undone": m.failed} {
		if n := f.followUps(t, m.id, jobType); n != want {
			t.Fatalf("batch %s has ended %d times and has %d jobs %s, not %d", m.id, m.ends, n, jobType, want)
		}
	}
}
