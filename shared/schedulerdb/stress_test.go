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
	"github.com/jobweaver/jobweaver/shared/jobevent/emit"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

// stressSlots is what the one worker of the stressed installation can hold.
const stressSlots = 20

// Several copies of every function work on one database at once and "crash" between commit and
// publish; an API and a worker that do their duty and no more have every job end all the same.
func TestManyCopiesThatCrashStillEndEveryJob(t *testing.T) {
	h := openHouse(t, Config{Lease: 300 * time.Millisecond, MaxLost: 3}, "pool_max_conns=12")
	w := &world{house: h, jobs: map[uuid.UUID]*stressJob{}, commandsLeft: 100}
	for range 200 {
		job := newJob()
		job.MaxRetryCount, job.Priority = rand.IntN(4), rand.IntN(10)
		job.Queue = []string{"default", "mail"}[rand.IntN(2)]
		job.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: rand.Int64N(30)}
		if rand.IntN(4) == 0 {
			runAt := time.Now().Add(rand.N(500 * time.Millisecond))
			job.RunAt = &runAt
		}
		w.accept(job)
	}
	w.run()
	w.check()
}

func (w *world) accept(job jobevent.Created) {
	w.ids, w.jobs[job.JobID] = append(w.ids, job.JobID), &stressJob{created: job, dead: map[string]bool{}}
}

// run has several copies of everybody at work until all jobs have ended.
func (w *world) run() {
	w.beat(w.Context())
	ctx, stop := context.WithTimeout(w.Context(), 60*time.Second)
	defer stop()
	var copies sync.WaitGroup
	for _, c := range []struct {
		copies int
		every  time.Duration
		do     func(context.Context)
	}{
		{2, 3 * time.Millisecond, w.ingestSome}, {3, 2 * time.Millisecond, w.settleSome},
		{2, 10 * time.Millisecond, w.commandSome}, {2, 15 * time.Millisecond, w.beat},
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

// world is what stands round the scheduler: the API's knowledge, the worker's database, the topics.
type world struct {
	house
	mu           sync.Mutex
	ids          []uuid.UUID
	jobs         map[uuid.UUID]*stressJob
	outcomes     []Outcome // said and not yet heard
	commandsLeft int
	controlled   []subject // what is paused and limited now and then
	controls     int64     // versions so far
}

type stressJob struct {
	created  jobevent.Created
	known    jobevent.Status // what the API knows
	dead     map[string]bool // ids of its dead letters
	command  jobevent.Command
	attempts []stressAttempt // what the worker knows, attempt 1 first
}

type stressAttempt struct {
	outcomes []Outcome // the waiting one and the final one, or the final one
	waiting  bool
	cancel   bool
}

// ended reports whether the worker has no more to do for the attempt.
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

// said publishes what a store method returned; now and then its function dies while it does.
func (w *world) said(ctx context.Context, effects emit.Effects, err error) {
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
		w.hear(e)
	}
}

func (w *world) hear(e jobevent.Item) {
	if e.Type() == jobevent.TypeApplied {
		return // it is about no job
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
			w.Errorf("job %s is said to have failed before its dead letter is", j.known.JobID)
		}
	}
}

// claim is the worker's word on an order: an attempt starts once, and after the one before has ended.
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

// some gives up to n jobs that the API or the worker has something to say about.
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

// ingestSome says job-created of jobs that the API has heard nothing about.
func (w *world) ingestSome(ctx context.Context) {
	var batch []jobevent.Created
	for _, j := range w.some(1+rand.IntN(20), func(j *stressJob) bool { return j.known.Version == 0 }) {
		batch = append(batch, j.created)
	}
	if len(batch) > 0 {
		effects, err := w.Ingest(ctx, batch)
		w.said(ctx, effects, err)
	}
}

func (w *world) settleSome(ctx context.Context) {
	w.mu.Lock()
	n := min(1+rand.IntN(25), len(w.outcomes))
	batch := slices.Clone(w.outcomes[:n])
	if rand.IntN(4) > 0 {
		w.outcomes = w.outcomes[n:] // else they are delivered once more
	}
	w.mu.Unlock()
	if n > 0 {
		effects, err := w.Settle(ctx, batch)
		w.said(ctx, effects, err)
	}
}

// commandSome gives new commands, repeats those that nobody has answered, and asks about the silent.
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
	w.said(ctx, effects, err)
}

func (w *world) beat(ctx context.Context) {
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	beat := jobevent.Heartbeat{
		WorkerID: "w1", Slots: stressSlots, Partitions: map[string][]int32{"default": all, "mail": all},
	}
	now := time.Now()
	held := w.some(stressSlots, func(j *stressJob) bool {
		return len(j.attempts) > 0 && !j.attempts[len(j.attempts)-1].ended()
	})
	w.mu.Lock()
	for i, j := range held {
		attempt := jobevent.HeldAttempt{JobID: j.created.JobID, Attempt: len(j.attempts)}
		if i%2 == 0 {
			attempt.StartedAt = &now
		}
		beat.Attempts = append(beat.Attempts, attempt)
	}
	w.mu.Unlock()
	other := jobevent.Heartbeat{WorkerID: "gone", Stopping: rand.IntN(2) == 0}
	effects, err := w.Beat(ctx, []jobevent.Heartbeat{other, beat})
	w.said(ctx, effects, err)
}

func (w *world) tickClock(ctx context.Context) {
	effects, _, err := w.Due(ctx, time.Second)
	w.said(ctx, effects, err)
}

func (w *world) tickWatchdog(ctx context.Context) {
	counted, err := w.Count(ctx)
	if err != nil && ctx.Err() == nil {
		w.Error(err)
	}
	effects, err := w.AskAgain(ctx, counted, time.Second)
	w.said(ctx, effects, err)
}

// endSome has the worker end some attempts, and say callbacks of which the API shows no effect again.
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
	err := w.pool.QueryRow(ctx, "SELECT count(*) FROM jobs WHERE status IN ('QUEUED', 'RUNNING')").Scan(&out)
	if ctx.Err() == nil && (err != nil || out > stressSlots) {
		w.Errorf("%d attempts in flight on %d slots (%v)", out, stressSlots, err)
	}
	counted, err := w.Count(ctx)
	if ctx.Err() == nil && (err != nil || counted.drift.ChangesCounts()) {
		w.Errorf("the ledger is wrong by %+v (%v)", counted.drift, err)
	}
}

// check holds what everybody knows at the end against the database.
func (w *world) check() {
	for _, j := range w.jobs {
		s := w.status(j.created)
		for i, move := range s.History[1:] {
			if move.From == "PENDING" && move.To == "QUEUED" && move.At.Before(s.History[i].At) {
				w.Errorf("sent out before it came: %+v", s.History)
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
