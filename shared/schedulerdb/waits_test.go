package schedulerdb

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// inLine gives jobs places in the order of a key, with room before each for the jobs of elements.
func inLine(key string, jobs ...*jobevent.Created) {
	for i, job := range jobs {
		job.OrderingKey, job.OrderNumber = key, int64(i+1)*100
		if i > 0 {
			job.OrderAfter = &jobs[i-1].JobID
		}
	}
}

// elementsOf returns the jobs of a fan-out's elements, placed as by the API.
func elementsOf(fanOut *jobevent.Created, n int) []jobevent.Created {
	jobs, last := newJobs(n), &fanOut.JobID
	for i := range jobs {
		if fanOut.OrderingKey != "" {
			jobs[i].OrderingKey, jobs[i].OrderNumber = fanOut.OrderingKey, fanOut.OrderNumber-int64(n-i)
			jobs[i].OrderAfter, last = last, &jobs[i].JobID
		}
	}
	return jobs
}

func reported(fanOut jobevent.Created) Outcome {
	o := completed(fanOut, 1)
	o.WorkerID, o.StartedAt = "", nil
	return o
}

func TestTheJobsOfElementsComeBeforeALaterJobOfTheirKey(t *testing.T) {
	h := roomy(t)
	list := newJob()
	each := after(list)
	each.Queue = jobevent.FanOutQueue
	report, other := after(each), newJob()
	inLine("k", &each, &report, &other)
	h.wantRuns(h.ingest(list, each, report, other), list)
	h.wantRuns(h.settle(completed(list, 1)))
	elements := elementsOf(&each, 2)
	h.wantRuns(h.ingest(elements[1]))
	h.wantRuns(h.ingest(elements[0]), elements[0])
	h.wantRuns(h.settle(completed(elements[0], 1)), elements[1])
	h.wantRuns(h.settle(completed(elements[1], 1)))
	h.wantRuns(h.settle(reported(each)), report)
	h.wantRuns(h.settle(completed(report, 1)), other)
	h.settle(completed(other, 1))
	h.wantNothingLeft()
}

func TestAFanOutWithoutElementsGivesUpItsPlace(t *testing.T) {
	h := roomy(t)
	first, list := newJob(), newJob()
	each := after(list)
	each.Queue = jobevent.FanOutQueue
	last := newJob()
	inLine("k", &first, &each, &last)
	h.wantRuns(h.ingest(first, list, each, last), first, list)
	h.settle(completed(list, 1))
	h.wantRuns(h.settle(reported(each)))
	h.wantRuns(h.settle(completed(first, 1)), last)
	h.settle(completed(last, 1))
	h.wantNothingLeft()
}

// The last job has the turn and waits for a job that waits for the first one, which is retried meanwhile.
func TestARetriedJobGetsTheTurnOfAJobThatWaitsForIt(t *testing.T) {
	h := roomy(t)
	first := newJob()
	between := after(first)
	last := after(between)
	inLine("k", &first, &last)
	last.OrderAfter = nil // the first one had failed when the last one was accepted
	h.ingest(first)
	failed := ended(first, 1, jobstate.KindFailed)
	failed.Retryable = false
	h.settle(failed)
	h.wantRuns(h.ingest(last))
	tx := h.begin() // the job that has the turn is locked: the transaction that has it locked makes it yield
	if _, err := tx.Exec(t.Context(), "SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", last.JobID); err != nil {
		t.Fatal(err)
	}
	h.wantRuns(h.order(first, 1, jobevent.CommandRetry))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantRuns(h.order(last, 1, jobevent.CommandRetry), first) // refused
	h.wantRuns(h.ingest(between))
	h.wantRuns(h.settle(completed(first, 2)), between)
	h.wantRuns(h.settle(completed(between, 1)), last)
	h.settle(completed(last, 1))
	h.wantNothingLeft()
}

func TestTheClockFindsATurnThatWasNotYielded(t *testing.T) {
	h := roomy(t)
	first := newJob()
	last := after(newJob())
	inLine("k", &first, &last)
	last.OrderAfter = nil
	h.ingest(last)
	h.tamper("UPDATE jobs SET order_number = 1 WHERE job_id = $1", last.JobID)
	h.wantRuns(h.ingest(first))
	h.exec("UPDATE jobs SET order_number = 200 WHERE job_id = $1", last.JobID)
	h.wantRuns(h.askAgain(0), first)
}

// waits is a random flow with keys and fan-outs, whose jobs arrive and end in any order and are retried by hand.
type waits struct {
	fixture
	*rand.Rand

	arriving []jobevent.Created
	fanOuts  map[uuid.UUID]*expanded
	out      []emit.RunOrder
	retries  map[uuid.UUID]int // by job: the number of its last command
}

type expanded struct {
	job      jobevent.Created
	elements []jobevent.Created
	made     bool
}

func newWaits(h fixture, r *rand.Rand) *waits {
	w := &waits{
		fixture: h, Rand: r, fanOuts: map[uuid.UUID]*expanded{}, retries: map[uuid.UUID]int{},
	}
	jobs, tails := newJobs(4+r.IntN(12)), map[string]*uuid.UUID{}
	for i := range jobs {
		job := &jobs[i]
		job.RunAnyway = r.IntN(2) == 0
		for _, before := range jobs[:i] {
			if r.IntN(4) == 0 {
				job.After = append(job.After, before.JobID)
			}
		}
		if r.IntN(3) > 0 {
			key := []string{"a", "b"}[r.IntN(2)] + jobs[0].JobID.String()
			job.OrderingKey, job.OrderNumber, job.OrderAfter = key, int64(i+1)*100, tails[key]
			tails[key] = &job.JobID
		}
		if i > 0 && r.IntN(3) == 0 {
			job.Queue, job.After = jobevent.FanOutQueue, append(job.After, jobs[i-1].JobID)
			w.fanOuts[job.JobID] = &expanded{job: *job, elements: elementsOf(job, r.IntN(4))}
		}
	}
	w.arriving = slices.Clone(jobs)
	r.Shuffle(len(jobs), func(i, j int) { w.arriving[i], w.arriving[j] = w.arriving[j], w.arriving[i] })
	return w
}

func (w *waits) take(runs []emit.RunOrder) { w.out = append(w.out, runs...) }

// step lets something happen, and reports whether something could.
func (w *waits) step() bool {
	switch {
	case len(w.arriving) > 0 && (len(w.out) == 0 || w.IntN(2) == 0):
		n := min(1+w.IntN(3), len(w.arriving))
		w.take(w.ingest(w.arriving[:n]...).Runs)
		w.arriving = w.arriving[n:]
	case len(w.out) > 0:
		w.end()
	default:
		return w.expand()
	}
	return true
}

// end ends an attempt that is out, and sometimes retries the job by hand.
func (w *waits) end() {
	at := w.IntN(len(w.out))
	run := w.out[at]
	w.out = slices.Delete(w.out, at, at+1)
	job := jobevent.Created{JobID: run.JobID}
	if w.IntN(3) > 0 {
		w.take(w.settle(completed(job, int(run.Attempt))).Runs)
		return
	}
	failed := ended(job, int(run.Attempt), jobstate.KindFailed)
	failed.Retryable = false
	w.take(w.settle(failed).Runs)
	if w.retries[run.JobID] < 2 && w.IntN(2) == 0 {
		w.retries[run.JobID]++
		w.take(w.order(job, w.retries[run.JobID], jobevent.CommandRetry).Runs)
	}
}

// expand does what the API does for fan-outs.
func (w *waits) expand() (did bool) {
	for id, f := range w.fanOuts {
		got := w.status(f.job)
		if got.Status != string(jobstate.Waiting) || slices.ContainsFunc(f.job.After, func(id uuid.UUID) bool {
			return !jobstate.Status(w.status(jobevent.Created{JobID: id}).Status).Terminal()
		}) {
			continue
		}
		if !f.made {
			f.made, did = true, true
			w.arriving = append(w.arriving, f.elements...)
			continue
		}
		if !slices.ContainsFunc(f.elements, func(job jobevent.Created) bool {
			return !jobstate.Status(w.status(job).Status).Terminal()
		}) {
			w.take(w.settle(reported(f.job)).Runs)
			delete(w.fanOuts, id)
			did = true
		}
	}
	return did || len(w.out) > 0
}

// Whatever the graph, the keys, the fan-outs, the order of arrival, the outcomes and the retries: no jobs wait for each
// other in a circle, so all of them end.
func TestNoJobsWaitForEachOther(t *testing.T) {
	h := roomy(t)
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(40) {
		w := newWaits(h, rand.New(rand.NewPCG(seed, round)))
		for w.step() {
		}
		if left := h.count("jobs WHERE finished_at IS NULL"); left > 0 {
			t.Fatalf("seed %d, round %d: %d jobs wait for ever", seed, round, left)
		}
	}
	h.wantNothingLeft()
}
