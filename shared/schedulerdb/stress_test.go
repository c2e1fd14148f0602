package schedulerdb

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

// stressSlots is the number of slots of the only worker.
const stressSlots = 20

// Several copies of every function work on one database at once and "crash" between commit and publish. With an API and
// a worker that only repeat what was not confirmed, every job ends all the same.
func TestConcurrentCopiesThatCrashStillEndEveryJob(t *testing.T) {
	h := openFixture(t, Config{Lease: 300 * time.Millisecond, MaxLost: 3}, patient+"pool_max_conns=12")
	w := &world{fixture: h, jobs: map[uuid.UUID]*stressJob{}, commandsLeft: 100}
	for range 50 {
		job := newJob()
		job.MaxRetryCount, job.Priority = rand.IntN(4), rand.IntN(10)
		job.Queue = []string{"default", "mail"}[rand.IntN(2)]
		job.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: rand.Int64N(30)}
		if rand.IntN(4) == 0 {
			runAt := time.Now().Add(rand.N(500 * time.Millisecond))
			job.RunAt = &runAt
		}
		w.acceptAlike(job, 1+rand.IntN(8))
	}
	w.run()
	w.check()
}

func (w *world) accept(job jobevent.Created) {
	w.ids, w.jobs[job.JobID] = append(w.ids, job.JobID), &stressJob{created: job, dead: map[string]bool{}}
}

// acceptAlike accepts n jobs of one request, which may share a row.
func (w *world) acceptAlike(job jobevent.Created, n int) {
	for i := range n {
		alike := job
		alike.JobID, alike.TraceID = jobevent.InBlock(job.JobID, i), uuid.New()
		w.accept(alike)
	}
}

// run runs several copies of each function until all jobs have ended.
func (w *world) run() {
	w.heartbeat(w.Context())
	ctx, stop := context.WithTimeout(w.Context(), 60*time.Second)
	defer stop()
	var copies sync.WaitGroup
	for _, c := range []struct {
		copies int
		every  time.Duration
		do     func(context.Context)
	}{
		{2, 3 * time.Millisecond, w.ingestSome}, {3, 2 * time.Millisecond, w.settleSome},
		{2, 10 * time.Millisecond, w.commandSome}, {2, 15 * time.Millisecond, w.heartbeat},
		{2, 10 * time.Millisecond, w.tickClock}, {2, 50 * time.Millisecond, w.tickWatchdog},
		{1, time.Millisecond, w.endSome}, {1, 5 * time.Millisecond, w.countInFlight}, {1, 20 * time.Millisecond, w.controlSome},
	} {
		for range c.copies {
			copies.Go(func() {
				ticker := time.NewTicker(c.every)
				defer ticker.Stop()
				for ctx.Err() == nil && !w.Failed() && !w.allEnded() {
					c.do(ctx)
					<-ticker.C
				}
			})
		}
	}
	copies.Wait()
	if ctx.Err() != nil {
		w.Error("the jobs do not end")
	}
}

// world simulates the scheduler's surroundings: the API's state, the worker's database and the topics.
type world struct {
	fixture
	mu           sync.Mutex
	ids          []uuid.UUID
	jobs         map[uuid.UUID]*stressJob
	outcomes     []Outcome // published and not yet consumed
	commandsLeft int
	controlled   []subject // the subjects of controls that change
	controls     int64     // the last version
}

type stressJob struct {
	created  jobevent.Created
	known    jobevent.Status // the last status that the API received
	dead     map[string]bool // ids of its dead letters
	command  jobevent.Command
	attempts []stressAttempt // in the worker's database, attempt 1 first
}

type stressAttempt struct {
	outcomes []Outcome // the final one, or the waiting one and the final one
	waiting  bool
	cancel   bool
}

// ended reports whether the attempt has its final outcome.
func (a *stressAttempt) ended() bool { return len(a.outcomes) > 0 && !a.waiting }

func (j *stressJob) confirmed() bool {
	return j.command.Number == 0 || j.known.LastCommand != nil && j.known.LastCommand.Number >= j.command.Number
}

func (w *world) allEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.jobs {
		if !jobstate.Status(j.known.Status).Terminal() || !j.confirmed() {
			return false
		}
	}
	return w.commandsLeft == 0
}

// publish publishes the effects of a store's method. Now and then the function dies meanwhile.
func (w *world) publish(ctx context.Context, effects emit.Effects, err error) {
	if ctx.Err() != nil {
		return
	}
	events, buildErr := effects.Events("test")
	if err != nil || buildErr != nil {
		w.Error(err, buildErr)
		return
	}
	if rand.IntN(5) == 0 {
		events = events[:rand.IntN(len(events)+1)]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		w.receive(e)
	}
}

func (w *world) receive(e jobevent.Item) {
	if e.Type() == jobevent.TypeApplied {
		return // it concerns no job
	}
	j := w.jobs[uuid.MustParse(e.Subject())]
	switch e.Type() {
	case jobevent.TypeRun:
		run, _ := jobevent.Decode[jobevent.Run](e)
		w.claim(j, run)
	case jobevent.TypeAttemptCancel:
		cancel, _ := jobevent.Decode[jobevent.AttemptCancel](e)
		if cancel.Attempt <= len(j.attempts) {
			j.attempts[cancel.Attempt-1].cancel = true
		}
	case jobevent.TypeDeadLettered:
		j.dead[e.ID()] = true
	case jobevent.TypeStatus:
		if status, _ := jobevent.Decode[jobevent.Status](e); status.Version > j.known.Version {
			j.known = status
		}
		if j.known.Status == "FAILED" && !j.dead[jobevent.DeadLetterID(j.known.JobID, j.known.Attempt)] {
			w.Errorf("the failure of job %s is published before its dead letter", j.known.JobID)
		}
	}
}

// claim handles a run order as a worker: an attempt starts once, after the one before it has an outcome.
func (w *world) claim(j *stressJob, run jobevent.Run) {
	n := run.Attempt
	switch {
	case n <= len(j.attempts):
		j.attempts[n-1].cancel = j.attempts[n-1].cancel || run.Cancel
		w.outcomes = append(w.outcomes, j.attempts[n-1].outcomes...)
	case n == len(j.attempts)+1 && (n == 1 || len(j.attempts[n-2].outcomes) > 0):
		w.mayStart(j)
		j.attempts = append(j.attempts, stressAttempt{cancel: run.Cancel})
	default:
		w.Errorf("job %s: attempt %d ordered after %d, %+v", run.JobID, n, len(j.attempts), j.attempts)
	}
}

// some returns up to n random jobs for which wanted returns true.
func (w *world) some(n int, wanted func(*stressJob) bool) []*stressJob {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*stressJob
	for _, i := range rand.Perm(len(w.ids)) {
		if j := w.jobs[w.ids[i]]; len(found) < n && wanted(j) {
			found = append(found, j)
		}
	}
	return found
}

// ingestSome ingests jobs of which the API has received no status.
func (w *world) ingestSome(ctx context.Context) {
	var batch []jobevent.Created
	isUnknown := func(j *stressJob) bool { return j.known.Version == 0 }
	for _, j := range w.some(1+rand.IntN(5), isUnknown) {
		alike := w.some(jobevent.BlockSize, func(other *stressJob) bool {
			return isUnknown(other) && jobevent.SameBlock(other.created.JobID, j.created.JobID)
		})
		for _, other := range alike {
			batch = append(batch, other.created)
		}
	}
	if len(batch) > 0 {
		effects, err := w.Ingest(ctx, batch)
		w.publish(ctx, effects, err)
	}
}

func (w *world) settleSome(ctx context.Context) {
	w.mu.Lock()
	n := min(1+rand.IntN(25), len(w.outcomes))
	batch := slices.Clone(w.outcomes[:n])
	if rand.IntN(4) > 0 {
		w.outcomes = w.outcomes[n:] // otherwise they are delivered again
	}
	w.mu.Unlock()
	if n > 0 {
		effects, err := w.Settle(ctx, batch)
		w.publish(ctx, effects, err)
	}
}

// commandSome sends new commands, repeats unanswered ones, and reports all known versions.
func (w *world) commandSome(ctx context.Context) {
	jobs := w.some(15, func(j *stressJob) bool { return j.known.Version > 0 })
	report := jobevent.Command{Command: jobevent.CommandReport}
	batch := []jobevent.Command{}
	w.mu.Lock()
	for _, j := range jobs {
		report.Reports = append(report.Reports, jobevent.ReportJob{JobID: j.known.JobID, Version: j.known.Version})
		if j.confirmed() && w.commandsLeft > 0 && rand.IntN(3) == 0 {
			w.commandsLeft--
			j.command = jobevent.Command{
				JobID: j.created.JobID, Number: j.command.Number + 1, Command: jobevent.CommandCancel, By: "tester",
			}
			if jobstate.Status(j.known.Status).Terminal() {
				j.command.Command = jobevent.CommandRetry
			}
		}
		if !j.confirmed() {
			batch = append(batch, j.command)
		}
	}
	w.mu.Unlock()
	effects, err := w.Command(ctx, append(batch, report))
	w.publish(ctx, effects, err)
}

func (w *world) heartbeat(ctx context.Context) {
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	heartbeat := jobevent.Heartbeat{
		WorkerID: "w1", Slots: stressSlots, Partitions: map[string][]int32{"default": all, "mail": all},
	}
	now := time.Now()
	held := w.some(stressSlots, func(j *stressJob) bool {
		return len(j.attempts) > 0 && !j.attempts[len(j.attempts)-1].ended()
	})
	w.mu.Lock()
	for i, j := range held {
		attempt := jobevent.ListedAttempt{JobID: j.created.JobID, Attempt: len(j.attempts)}
		if i%2 == 0 {
			attempt.StartedAt = &now
		}
		heartbeat.Attempts = append(heartbeat.Attempts, attempt)
	}
	w.mu.Unlock()
	other := jobevent.Heartbeat{WorkerID: "gone", Stopping: rand.IntN(2) == 0}
	effects, err := w.Heartbeat(ctx, []jobevent.Heartbeat{other, heartbeat})
	w.publish(ctx, effects, err)
}

func (w *world) tickClock(ctx context.Context) {
	effects, _, err := w.Due(ctx, time.Second)
	w.publish(ctx, effects, err)
}

func (w *world) tickWatchdog(ctx context.Context) {
	counted, err := w.Count(ctx)
	if err != nil && ctx.Err() == nil {
		w.Error(err)
	}
	effects, err := w.AskAgain(ctx, counted, time.Second)
	w.publish(ctx, effects, err)
}

// endSome ends some of the worker's attempts, and repeats callbacks that show no effect in the API.
func (w *world) endSome(context.Context) {
	jobs := w.some(5, func(j *stressJob) bool {
		return len(j.attempts) > 0 && (!j.attempts[len(j.attempts)-1].ended() || j.known.Status == "WAITING")
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range jobs {
		a := &j.attempts[len(j.attempts)-1]
		if !a.ended() {
			o := ended(j.created, len(j.attempts), stressKind(a))
			o.CallbackTimeout, o.RetryAfter = time.Minute, rand.N(20*time.Millisecond)
			a.outcomes, a.waiting = append(a.outcomes, o), o.Kind == jobstate.KindWaiting
		}
		w.outcomes = append(w.outcomes, a.outcomes[len(a.outcomes)-1])
	}
}

func stressKind(a *stressAttempt) jobstate.Kind {
	switch n := rand.IntN(20); {
	case a.cancel && n < 15:
		return jobstate.KindCancelled
	case n < 10 || a.waiting && n < 15:
		return jobstate.KindCompleted
	case n < 15 || a.waiting:
		return jobstate.KindFailed
	default:
		return []jobstate.Kind{
			jobstate.KindLost, jobstate.KindInterrupted, jobstate.KindSnoozed, jobstate.KindWaiting, jobstate.KindWaiting,
		}[n-15]
	}
}

func (w *world) countInFlight(ctx context.Context) {
	var out int
	err := w.pool.QueryRow(ctx, "SELECT count(*) FROM attempts_out").Scan(&out)
	if ctx.Err() == nil && (err != nil || out > stressSlots) {
		w.Errorf("%d attempts in flight on %d slots (%v)", out, stressSlots, err)
	}
	counted, err := w.Count(ctx)
	if ctx.Err() == nil && (err != nil || counted.drift.ChangesCounts()) {
		w.Errorf("the ledger is wrong by %+v (%v)", counted.drift, err)
	}
}

// check compares what the API and the worker have in the end with the scheduler's database.
func (w *world) check() {
	for _, j := range w.jobs {
		s := w.status(j.created)
		for i, move := range s.History[1:] {
			if move.From == "PENDING" && move.To == "QUEUED" && move.At.Before(s.History[i].At) {
				w.Errorf("dispatched before it was ready: %+v", s.History)
			}
		}
		if s.Status != j.known.Status || s.Version != j.known.Version || s.Attempt != len(j.attempts) {
			w.Errorf("the database has %+v, the API %+v, the worker %d attempts", s, j.known, len(j.attempts))
		}
	}
	var deadlocks int
	w.exec("SELECT pg_stat_force_next_flush()")
	err := w.pool.QueryRow(w.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks)
	if err != nil || deadlocks > 0 {
		w.Errorf("%d deadlocks (%v)", deadlocks, err)
	}
}
