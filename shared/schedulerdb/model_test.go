package schedulerdb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The store does with many jobs at once what a model without SQL does: the model decides which job may run, which waits
// for which, which has the turn, and which a pause or a limit holds back. There is always room, so every job that may
// run is out.
func TestTheStoreSchedulesAsTheModelDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	h := newFixture(t)
	rapid.Check(t, func(rt *rapid.T) {
		h.exec("DELETE FROM jobs; DELETE FROM ended; DELETE FROM dependencies; DELETE FROM order_gaps; DELETE FROM controls; DELETE FROM workers")
		// Controls of an earlier run have another revision.
		h.exec(`UPDATE dispatch_state SET n = n + 1000, in_flight = '{}', floors = '{}', due_floor = null,
			more = json_build_object('controls', n + 1000)`)
		h.heartbeat("w", 1000, []int32{0})
		m := newModel(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":        func(rt *rapid.T) { m.compare(rt, h) },
			"ingest":  func(rt *rapid.T) { m.ingestSome(rt, h) },
			"outcome": func(rt *rapid.T) { m.settleOne(rt, h) },
			"command": func(rt *rapid.T) { m.commandOne(rt, h) },
			"due":     func(rt *rapid.T) { m.fallDue(rt, h) },
			"expire":  func(rt *rapid.T) { m.expire(rt, h) },
			"control": func(rt *rapid.T) { m.control(rt, h) },
		})
	})
}

type model struct {
	jobs     []*modelJob
	numbers  int             // numbers of commands and versions of controls
	controls map[subject]int // the most jobs that may run; missing: any number
}

type modelJob struct {
	jobstate.Job
	created jobevent.Created
	known   bool
	started bool
	retried bool // after its end, which removes its expiry
	waits   map[uuid.UUID]bool
	hasTurn bool // true without a key, too
}

const modelJobs = 10

// newModel accepts jobs as the API does. The scheduler receives each job at a random time.
func newModel(rt *rapid.T) *model {
	m := &model{controls: map[subject]int{}}
	last := map[string]*uuid.UUID{}
	for i := range modelJobs {
		job := newJob()
		job.Priority, job.MaxRetryCount = rapid.IntRange(0, 9).Draw(rt, "priority"), 1
		job.JobType = rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "type")
		job.OwnerID = rapid.SampledFrom([]string{"", "acme"}).Draw(rt, "owner")
		job.FairnessKey = "all" // rank alone orders them; the package dispatch has a model of shares
		if key := rapid.SampledFrom([]string{"", "k", "l"}).Draw(rt, "key"); key != "" {
			of := key + job.OwnerID
			job.OrderingKey, job.OrderNumber, job.OrderAfter = key, int64(i+1), last[of]
			last[of] = &job.JobID
		}
		for range rapid.IntRange(0, min(i, 2)).Draw(rt, "dependencies") {
			job.After = append(job.After, m.jobs[rapid.IntRange(0, i-1).Draw(rt, "after")].created.JobID)
			job.RunAnyway = rapid.Bool().Draw(rt, "anyway")
		}
		if rapid.IntRange(0, 4).Draw(rt, "delayed") == 0 {
			runAt := time.Now().Add(time.Hour)
			job.RunAt = &runAt
		}
		m.jobs = append(m.jobs, &modelJob{created: job, Job: jobstate.Job{MaxRetryCount: job.MaxRetryCount}})
	}
	return m
}

func (m *model) byID(id uuid.UUID) *modelJob {
	for _, j := range m.jobs {
		if j.created.JobID == id {
			return j
		}
	}
	return nil
}

// pick draws one of the jobs for which the condition holds; nil: there is none.
func (m *model) pick(rt *rapid.T, what string, holds func(*modelJob) bool) *modelJob {
	fit := slices.DeleteFunc(slices.Clone(m.jobs), func(j *modelJob) bool { return !holds(j) })
	if len(fit) == 0 {
		return nil
	}
	return rapid.SampledFrom(fit).Draw(rt, what)
}

func (j *modelJob) String() string { return j.created.JobID.String()[30:] }

// GoString is the text that rapid prints for a draw.
func (j *modelJob) GoString() string {
	return fmt.Sprint(j, " ", j.Status, " of key ", j.created.OrderingKey)
}

func (m *model) ingestSome(rt *rapid.T, h fixture) {
	var batch []jobevent.Created
	for range rapid.IntRange(1, 3).Draw(rt, "batch") {
		j := m.pick(rt, "new", func(j *modelJob) bool { return !j.known })
		if j == nil {
			break
		}
		j.known, j.Status, j.waits, j.hasTurn = true, jobstate.Pending, map[uuid.UUID]bool{}, j.created.OrderingKey == ""
		if j.created.RunAt != nil {
			j.Status = jobstate.Scheduled
		}
		for _, id := range j.created.After {
			j.waits[id] = true
		}
		batch = append(batch, j.created)
	}
	if len(batch) > 0 {
		h.ingest(batch...)
		m.settle(rt, h)
	}
}

func (m *model) settleOne(rt *rapid.T, h fixture) {
	j := m.pick(rt, "attempt", func(j *modelJob) bool { return j.Status.InFlight() || j.Status == jobstate.Waiting })
	if j == nil {
		return
	}
	o := ended(j.created, j.Attempt, rapid.SampledFrom([]jobstate.Kind{
		jobstate.KindCompleted, jobstate.KindCompleted, jobstate.KindFailed, jobstate.KindLost, jobstate.KindInterrupted,
		jobstate.KindCancelled, jobstate.KindSnoozed, jobstate.KindWaiting,
	}).Draw(rt, "kind"))
	if ends := o.Kind == jobstate.KindCompleted || o.Kind == jobstate.KindFailed; ends && rapid.Bool().Draw(rt, "called back") {
		o = calledBack(j.created, j.Attempt, o.Kind)
	}
	o.CallbackTimeout, o.RetryAfter = time.Hour, time.Hour
	h.settle(o)
	m.apply(j, o)
	m.settle(rt, h)
}

func (m *model) apply(j *modelJob, o Outcome) {
	next, changed := j.Apply(jobstate.Outcome{
		Attempt: o.Attempt, Kind: o.Kind, Retryable: o.Retryable, Callback: o.WorkerID == "",
	}, 3)
	j.started = j.started || changed && o.StartedAt != nil
	j.Job = next
}

func (m *model) commandOne(rt *rapid.T, h fixture) {
	j := m.pick(rt, "job", func(j *modelJob) bool { return j.known })
	if j == nil {
		return
	}
	command := rapid.SampledFrom([]jobstate.Command{
		jobstate.Cancel, jobstate.Retry, jobstate.Reschedule, jobstate.Wake, jobstate.Delete, jobstate.Change,
	}).Draw(rt, "command")
	m.numbers++
	was := j.Status
	next, _, _ := j.Command(m.numbers, command)
	switch command {
	case jobstate.Reschedule:
		h.reschedule(j.created, m.numbers, time.Now().Add(time.Hour))
	case jobstate.Wake:
		h.wake(j.created, m.numbers, time.Now().Add(time.Hour))
	case jobstate.Change:
		h.change(j.created, m.numbers, priorityOf(rapid.IntRange(0, 9).Draw(rt, "priority")))
	case jobstate.Cancel, jobstate.Retry, jobstate.Delete:
		h.order(j.created, m.numbers, string(command))
	}
	j.Job = next
	if was.Terminal() && !j.Status.Terminal() {
		j.retried, j.hasTurn = true, j.created.OrderingKey == ""
	}
	m.settle(rt, h)
}

// control limits how many jobs of a queue, a job type or an owner may run; 0 is a pause.
func (m *model) control(rt *rapid.T, h fixture) {
	s := rapid.SampledFrom([]subject{
		{jobevent.ControlQueue, "default"}, {jobevent.ControlType, "A"}, {jobevent.ControlType, "B"},
		{jobevent.ControlOwner, "acme"},
	}).Draw(rt, "subject")
	most := rapid.IntRange(-1, 2).Draw(rt, "most")
	m.numbers++
	c := jobevent.Control{Kind: s.kind, Name: s.name, Version: int64(m.numbers), Paused: most == 0}
	if delete(m.controls, s); most >= 0 {
		m.controls[s] = most
	}
	if most > 0 {
		c.MaxRunning = &most
	}
	h.control(c)
	m.settle(rt, h)
}

// expire lets the expiry of a job pass.
func (m *model) expire(rt *rapid.T, h fixture) {
	j := m.pick(rt, "late", func(j *modelJob) bool { return j.known && !j.retried && !j.Status.Terminal() })
	if j == nil {
		return
	}
	h.tamper("UPDATE jobs SET expires_at = now() WHERE job_id = $1", j.created.JobID)
	h.due()
	h.exec("UPDATE jobs SET expires_at = null")
	if !j.started {
		j.Job, _ = j.GiveUp()
	}
	m.settle(rt, h)
}

// fallDue lets a job become due.
func (m *model) fallDue(rt *rapid.T, h fixture) {
	j := m.pick(rt, "due", func(j *modelJob) bool {
		return j.known && (j.Status == jobstate.Scheduled || j.Status == jobstate.Retrying || j.Status == jobstate.Waiting)
	})
	if j == nil {
		return
	}
	h.tamper("UPDATE jobs SET due_at = now() WHERE job_id = $1", j.created.JobID)
	h.due()
	if j.isSuspect() && slices.ContainsFunc(m.jobs, func(other *modelJob) bool {
		return other.known && other.isSuspect() &&
			(other.Status == jobstate.Pending || other.Status.InFlight())
	}) {
		return // it is put off: with one worker, one suspect at a time goes out
	}
	if j.Status == jobstate.Waiting { // the API was asked, and has no callback
		o := Outcome{
			JobID: j.created.JobID, Attempt: j.Attempt, Kind: jobstate.KindFailed, Retryable: true, ErrorCode: "WORKER.CALLBACK_TIMEOUT",
		}
		h.settle(o)
		m.apply(j, o)
	} else {
		j.Job, _ = j.Due()
	}
	m.settle(rt, h)
}

// isSuspect: it was lost at least twice in a row.
func (j *modelJob) isSuspect() bool { return j.LostCount >= 2 }

// settle applies the consequences of the states of all jobs until nothing changes.
func (m *model) settle(rt *rapid.T, h fixture) {
	for changed := true; changed; {
		changed = false
		for _, j := range m.jobs {
			changed = j.known && (m.waitLess(j) || m.takeTurn(j)) || changed
		}
	}
	// A job that was inserted as QUEUED goes out before the jobs that its arrival releases, whatever their rank.
	rows, err := h.pool.Query(h.Context(), "SELECT job_id, status = 'QUEUED' AND moves = 1 FROM jobs ORDER BY rank, job_id")
	if err != nil {
		rt.Fatal(err)
	}
	var inRank, arrived []uuid.UUID
	var id uuid.UUID
	var isNew bool
	if _, err := pgx.ForEachRow(rows, []any{&id, &isNew}, func() error {
		if inRank = append(inRank, id); isNew {
			arrived = append(arrived, id)
		}
		return nil
	}); err != nil {
		rt.Fatal(err)
	}
	m.dispatch(arrived)
	m.dispatch(inRank)
}

// dispatch sends out jobs, the best rank first, and skips jobs that a control holds back.
func (m *model) dispatch(inRank []uuid.UUID) {
	for _, id := range inRank {
		j := m.byID(id)
		if j.Status != jobstate.Pending || len(j.waits) > 0 || !j.hasTurn || m.holdsBack(j) {
			continue
		}
		j.Job, _ = j.Dispatch()
	}
}

func (j *modelJob) isUnder(s subject) bool {
	switch s.kind {
	case jobevent.ControlQueue:
		return j.created.Queue == s.name
	case jobevent.ControlType:
		return j.created.JobType == s.name
	case jobevent.ControlOwner:
		return j.created.OwnerID == s.name
	case jobevent.ControlKey:
		return dispatch.FairnessKeyOf(&j.created) == s.name
	case jobevent.ControlWorker, jobevent.ControlCreated: // no subject of a job
	}
	return false
}

func (m *model) holdsBack(j *modelJob) bool {
	for s, most := range m.controls {
		running := 0
		for _, other := range m.jobs {
			if other.known && other.Status.InFlight() && other.isUnder(s) {
				running++
			}
		}
		if j.isUnder(s) && running >= most {
			return true
		}
	}
	return false
}

// waitLess drops the dependencies that have ended.
func (m *model) waitLess(j *modelJob) (changed bool) {
	if j.Status.Terminal() {
		changed = len(j.waits) > 0
		j.waits = nil
		return changed
	}
	for id := range j.waits {
		before := m.byID(id)
		if !before.known || !before.Status.Terminal() {
			continue
		}
		changed = true
		delete(j.waits, id)
		if before.Status != jobstate.Completed && !j.created.RunAnyway {
			j.Job, _ = j.GiveUp()
			j.waits = nil
			return true
		}
	}
	return changed
}

// takeTurn gives the job the turn if it is the first in line and no other job of its key has the turn, or only one with
// a higher number that waits for other jobs, which yields it.
func (m *model) takeTurn(j *modelJob) bool {
	if j.hasTurn || j.Status.Terminal() || !m.complete(j) {
		return false
	}
	var holder *modelJob
	for _, other := range m.jobs {
		if other == j || !other.known || other.Status.Terminal() ||
			other.created.OrderingKey != j.created.OrderingKey || other.created.OwnerID != j.created.OwnerID {
			continue
		}
		if other.created.OrderNumber < j.created.OrderNumber || other.hasTurn && len(other.waits) == 0 {
			return false
		}
		if other.hasTurn {
			holder = other
		}
	}
	if j.hasTurn = true; holder != nil {
		holder.hasTurn = false
	}
	return true
}

// complete reports whether the job and all jobs accepted before it have arrived.
func (m *model) complete(j *modelJob) bool {
	return j.known && (j.created.OrderAfter == nil || m.complete(m.byID(*j.created.OrderAfter)))
}

// compare compares the rows with the model.
func (m *model) compare(rt *rapid.T, h fixture) {
	var want []string
	for _, j := range m.jobs {
		if j.known {
			want = append(want, fmt.Sprint(j, " ", j.Status, " attempt ", j.Attempt, " asked ", j.CancelRequested))
		}
	}
	rows, err := h.pool.Query(h.Context(), "SELECT job_id, status, attempt, cancel_requested_at IS NOT NULL FROM all_jobs ORDER BY job_id")
	if err != nil {
		rt.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var id uuid.UUID
		var status string
		var attempt int
		var asked bool
		if err := rows.Scan(&id, &status, &attempt, &asked); err != nil {
			rt.Fatal(err)
		}
		got = append(got, fmt.Sprint(id.String()[30:], " ", status, " attempt ", attempt, " asked ", asked))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		rt.Fatalf("the store has\n%s\nthe model\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if drift := h.drift(); !drift.Empty() {
		rt.Fatalf("the ledger does not know of %+v", drift)
	}
}
