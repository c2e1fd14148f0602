package kill

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const lease = 15 * time.Second

// questions returns how often the watchdog asks at most about an attempt that was out for this long and that no
// worker has named: after a lease, and then after leases that double, less a fifth by chance, up to 5 min.
func questions(out time.Duration) (n int) {
	for wait := lease; out >= wait; n++ {
		out -= wait
		wait = min(lease<<n, 5*time.Minute) * 8 / 10
	}
	return n
}

// checkFlood: run-job has one record of an attempt, one more for each question of the watchdog, and one more for each
// fault that may have had its batch delivered again. A question about the attempt before counts too: its answer
// repeats an outcome after which this attempt is out already, and the outcome function then publishes this attempt
// again. Each record may exist twice, because it is published again when the broker's answer is late. A wiped topic
// proves nothing.
func (e *evidence) checkFlood() {
	if e.wiped {
		return
	}
	for id, job := range e.jobs {
		for n := 1; n <= job.Attempt; n++ {
			from, to := job.out(n)
			if o, runs := e.orders[job.key()], e.ran[id]; e.stepped && o != nil && len(runs) > 0 {
				from, to = o.accepted, runs[len(runs)-1].end
			}
			if from.IsZero() {
				continue // the history no longer has it
			}
			records, faults := e.runs[jobevent.RunID(uuid.MustParse(id), n)], e.republished(from, to)
			before, until := job.out(n - 1)
			asked := questions(to.Sub(from)) + questions(until.Sub(before))
			if records > 2*(1+asked+faults) {
				e.find(id, "attempt %d has %d records on run-job: it was out for %s, with %d faults", n, records, ms(to.Sub(from)), faults)
			}
		}
	}
}

// out returns the time in which an attempt was out.
func (s *shown) out(attempt int) (from, to time.Time) {
	for _, m := range s.History {
		switch {
		case m.Attempt != attempt || m.To == "RUNNING":
		case m.To == "QUEUED":
			from = m.At
		case !from.IsZero() && to.IsZero():
			to = m.At
		}
	}
	return from, to
}

// redeliveredWithin is how long after a fault interrupted batches are delivered again: their function starts, joins
// its group and reads them, or tries again after its longest pause.
const redeliveredWithin = 10 * time.Second

// republished counts the faults, while an attempt was out, of the processes that publish or carry orders.
func (e *evidence) republished(from, to time.Time) (n int) {
	for _, f := range e.chaos.faults {
		if !strings.HasPrefix(f.target, "runjob") && !strings.HasPrefix(f.target, "poller") && f.from.Before(to) && f.to.Add(redeliveredWithin).After(from) {
			n++
		}
	}
	return n
}

func TestTheCheckOfFloodsFindsEachViolation(t *testing.T) {
	t.Parallel()
	during := func(name string, from, to float64) *chaos {
		return &chaos{faults: []fault{{target: name, from: when(from), to: when(to)}}}
	}
	fault := func(name string) *chaos { return during(name, 2, 3) }
	for name, c := range map[string]struct {
		records int
		seconds float64
		chaos   *chaos
		find    string
	}{
		"two records":                          {2, 5, &chaos{}, ""},
		"three records in five seconds":        {3, 5, &chaos{}, "has 3 records"},
		"three records in more than a lease":   {3, 16, &chaos{}, ""},
		"five records in that time":            {5, 16, &chaos{}, "has 5 records"},
		"three records, and ingest was killed": {3, 5, fault("ingest"), ""},
		"three records, and a worker was":      {3, 5, fault("runjob-1"), "has 3 records"},
		"three records, just after PostgreSQL": {3, 5, during("postgres", -2, 0.9), ""},
		"three records, long after PostgreSQL": {3, 5, during("postgres", -12, -10), "has 3 records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.job(1, 1, 1+c.seconds)
			s.chaos, s.runs = c.chaos, map[string]int{jobevent.RunID(uuid.MustParse(s.orders[0].id), 1): c.records}
			s.checkFlood()
			s.wants(t, c.find)
		})
	}
}

func TestAQuestionAboutTheAttemptBeforeAllowsOneMoreRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before float64 // seconds for which the first attempt was out
		find   string
	}{
		"the attempt before was asked about": {16, ""},
		"it ended within its lease":          {14, "attempt 2 has 3 records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.job(1, 1, 2)
			id, lost := s.orders[0].id, 1+c.before
			job := s.jobs[id]
			job.Attempt, job.History = 2, []shownMove{
				{At: when(1), To: "QUEUED", Attempt: 1},
				{At: when(lost), From: "QUEUED", To: "PENDING", Attempt: 1},
				{At: when(lost), From: "PENDING", To: "QUEUED", Attempt: 2},
				{At: when(lost + 3), From: "QUEUED", To: completed, Attempt: 2},
			}
			s.chaos, s.runs = &chaos{}, map[string]int{jobevent.RunID(uuid.MustParse(id), 2): 3}
			s.checkFlood()
			s.wants(t, c.find)
		})
	}
}

func TestQuestionsBecomeRare(t *testing.T) {
	t.Parallel()
	for out, want := range map[time.Duration]int{
		0: 0, 14 * time.Second: 0, 15 * time.Second: 1, 27 * time.Second: 2, 51 * time.Second: 3, 99 * time.Second: 4,
		time.Hour: 19,
	} {
		if n := questions(out); n != want {
			t.Errorf("%d questions in %s, want %d", n, out, want)
		}
	}
}
