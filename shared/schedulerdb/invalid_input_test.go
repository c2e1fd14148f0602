package schedulerdb

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
)

var (
	longAgo = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	farOff  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -23*3600))
)

// wantHandled asserts that input was refused as invalid or did no harm: the state of every job can still be
// published.
func (h fixture) wantHandled(refused bool, effects emit.Effects, err error) {
	h.Helper()
	if errors.Is(err, jobevent.ErrInvalid) != refused || err != nil && !refused {
		h.Errorf("want refused %t, got %v", refused, err)
	}
	if _, err := effects.Events("test"); err != nil {
		h.Error(err)
	}
	h.exec("UPDATE jobs SET lease_expires_at = now() - interval '1 s' WHERE lease_expires_at IS NOT NULL")
	h.askAgain(time.Minute)
	h.due()
	var ids []uuid.UUID
	if err := h.pool.QueryRow(h.Context(), "SELECT array_agg(job_id) FROM all_jobs").Scan(&ids); err != nil {
		h.Fatal(err)
	}
	for _, id := range ids {
		h.wantPublishable(id)
	}
}

func (h fixture) wantPublishable(id uuid.UUID) {
	h.Helper()
	for _, e := range h.report(jobevent.Created{JobID: id}, 0) {
		if len(e.Data()) > 1<<20 {
			h.Errorf("%s has %d bytes", e.Type(), len(e.Data()))
		}
	}
}

func TestInvalidJobsAreRefused(t *testing.T) {
	h := newFixture(t)
	for name, spoil := range map[string]func(*jobevent.Created){
		"no id":                            func(j *jobevent.Created) { j.JobID = uuid.Nil },
		"a priority too high":              func(j *jobevent.Created) { j.Priority = 10 },
		"a priority beyond its column":     func(j *jobevent.Created) { j.Priority = 1<<16 + 3 },
		"retries too many":                 func(j *jobevent.Created) { j.MaxRetryCount = 101 },
		"retries beyond their column":      func(j *jobevent.Created) { j.MaxRetryCount = 1<<16 + 3 },
		"retries below nothing":            func(j *jobevent.Created) { j.MaxRetryCount = math.MinInt },
		"no timeout":                       func(j *jobevent.Created) { j.TimeoutMs = 0 },
		"a timeout beyond its column":      func(j *jobevent.Created) { j.TimeoutMs = 1<<32 + 1000 },
		"created before history":           func(j *jobevent.Created) { j.CreatedAt = longAgo },
		"created when years have 5 digits": func(j *jobevent.Created) { j.CreatedAt = farOff },
		"due when years have 5 digits":     func(j *jobevent.Created) { j.RunAt = &farOff },
		"to expire before history":         func(j *jobevent.Created) { j.ExpiresAt = &longAgo },
		"to expire when years have 5":      func(j *jobevent.Created) { j.ExpiresAt = &farOff },
		"no queue":                         func(j *jobevent.Created) { j.Queue = "" },
		"a queue that names no topic":      func(j *jobevent.Created) { j.Queue = "a b" },
		"a queue with a line break":        func(j *jobevent.Created) { j.Queue = "mail\n" },
		"NUL in its type":                  func(j *jobevent.Created) { j.JobType = "A\x00" },
		"no payload":                       func(j *jobevent.Created) { j.Payload = nil },
		"a payload that is no JSON":        func(j *jobevent.Created) { j.Payload = json.RawMessage(`{`) },
		"a payload that is no UTF-8":       func(j *jobevent.Created) { j.Payload = json.RawMessage("\"\xff\"") },
	} {
		t.Run(name, func(t *testing.T) {
			h := fixture{t, h.Store}
			bad := newJob()
			spoil(&bad)
			effects, err := h.Ingest(t.Context(), []jobevent.Created{newJob(), bad})
			h.wantHandled(true, effects, err)
		})
	}
}

func TestUnusualJobsDoNoHarm(t *testing.T) {
	h := newFixture(t)
	for name, change := range map[string]func(*jobevent.Created){
		"no trace":               func(j *jobevent.Created) { j.TraceID = uuid.Nil },
		"no instant of creation": func(j *jobevent.Created) { j.CreatedAt = time.Time{} },
		"created in the future":  func(j *jobevent.Created) { j.CreatedAt = time.Now().Add(1e6 * time.Hour) },
		"an unknown policy":      func(j *jobevent.Created) { j.RetryPolicy = &retrypolicy.Policy{Type: "x", DelayMs: -1} },
		"NUL in its payload":     func(j *jobevent.Created) { j.Payload = json.RawMessage(`"\u0000\ud800"`) },
	} {
		t.Run(name, func(t *testing.T) {
			h := fixture{t, h.Store}
			job := newJob()
			change(&job)
			effects, err := h.Ingest(t.Context(), []jobevent.Created{job})
			h.wantHandled(false, effects, err)
			h.settle(ended(job, 1, jobstate.KindFailed))
			h.wantHandled(false, emit.Effects{}, nil)
		})
	}
}

func TestInvalidOutcomesAreRefusedOrDoNoHarm(t *testing.T) {
	h := newFixture(t)
	huge := strings.Repeat("\x01<é", 4<<20)
	for name, c := range map[string]struct {
		spoil   func(*Outcome)
		refused bool
		want    jobstate.Status // of the job, if the outcome is not refused
	}{
		"no job":                        {spoil: func(o *Outcome) { o.JobID = uuid.Nil }, want: jobstate.Queued},
		"attempt 0":                     {spoil: func(o *Outcome) { o.Attempt = 0 }, want: jobstate.Queued},
		"a negative attempt":            {spoil: func(o *Outcome) { o.Attempt = math.MinInt }, want: jobstate.Queued},
		"an attempt beyond its column":  {spoil: func(o *Outcome) { o.Attempt = 1<<32 + 1 }, want: jobstate.Queued},
		"an unknown kind":               {spoil: func(o *Outcome) { o.Kind = "x" }, want: jobstate.Queued},
		"no worker":                     {spoil: func(o *Outcome) { o.WorkerID = "" }, want: jobstate.Queued}, // it counts as a callback
		"a huge worker's name":          {spoil: func(o *Outcome) { o.WorkerID = huge }, want: jobstate.Retrying},
		"a huge message":                {spoil: func(o *Outcome) { o.Message = huge }, want: jobstate.Retrying},
		"an odd error code":             {spoil: func(o *Outcome) { o.ErrorCode = "A\x00\xff" + huge }, want: jobstate.Retrying},
		"no error code":                 {spoil: func(o *Outcome) { o.ErrorCode, o.Retryable = "\x00", false }, refused: true},
		"no instants":                   {spoil: func(o *Outcome) { o.StartedAt, o.FinishedAt = &time.Time{}, nil }, want: jobstate.Retrying},
		"started before history":        {spoil: func(o *Outcome) { o.StartedAt = &longAgo }, refused: true},
		"finished in the far future":    {spoil: func(o *Outcome) { o.FinishedAt = &farOff }, refused: true},
		"a retry in some centuries":     {spoil: func(o *Outcome) { o.RetryAfter = math.MaxInt64 }, want: jobstate.Retrying},
		"a retry in the past":           {spoil: func(o *Outcome) { o.RetryAfter = math.MinInt64 }, want: jobstate.Retrying},
		"a snooze into the past":        {spoil: func(o *Outcome) { o.Kind, o.RetryAfter = jobstate.KindSnoozed, -1e18 }, want: jobstate.Scheduled},
		"a callback in some centuries":  {spoil: func(o *Outcome) { o.Kind, o.CallbackTimeout = jobstate.KindWaiting, math.MaxInt64 }, want: jobstate.Waiting},
		"a callback before it waits":    {spoil: func(o *Outcome) { o.Kind, o.CallbackTimeout = jobstate.KindWaiting, -1e18 }, want: jobstate.Waiting},
		"an output that is no JSON":     {spoil: output(`{`), refused: true},
		"an output that is no UTF-8":    {spoil: output("\"\xff\""), refused: true},
		"an output with NUL":            {spoil: output(`"\u0000\ud800"`), want: jobstate.Completed},
		"completed, no worker, no time": {spoil: bare, want: jobstate.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			h := fixture{t, h.Store}
			h.exec("DELETE FROM ended")
			h.tamper("DELETE FROM jobs")
			job, other := newJob(), newJob()
			h.ingest(job, other)
			bad := ended(job, 1, jobstate.KindFailed)
			c.spoil(&bad)
			for i, batch := range [][]Outcome{{bad, completed(other, 1)}, {bad}} {
				effects, err := h.Settle(t.Context(), batch)
				if !c.refused && i == 0 {
					h.wantStatus(job, c.want)
				}
				h.wantHandled(c.refused, effects, err)
			}
		})
	}
}

func output(json string) func(*Outcome) {
	return func(o *Outcome) { o.Kind, o.ErrorCode, o.Output = jobstate.KindCompleted, "", []byte(json) }
}

func bare(o *Outcome) {
	*o = Outcome{JobID: o.JobID, Attempt: 1, Kind: jobstate.KindCompleted, StartedAt: &time.Time{}, FinishedAt: &time.Time{}}
}

func TestAnOutcomeWithoutAWorkerKeepsTheKnownOne(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	began := time.Now().Truncate(time.Microsecond)
	h.heartbeat("w1", 1, []int32{0}, jobevent.ListedAttempt{JobID: job.JobID, Attempt: 1, StartedAt: &began})
	o := completed(job, 1)
	bare(&o)
	h.settle(o)
	s := h.wantStatus(job, jobstate.Completed)
	if s.StartedAt == nil || !s.StartedAt.Equal(began) || s.History[2].StartedAt != nil {
		t.Errorf("%+v", s)
	}
}

func TestInvalidCommandsDoNoHarm(t *testing.T) {
	// With the race detector on a busy machine the client takes seconds for 3 MiB of text.
	h := openFixture(t, Config{Lease: 15 * time.Second, MaxLost: 3}, "idle_in_transaction_session_timeout=0")
	huge := strings.Repeat("\x00x\xff", 1<<20)
	job := newJob()
	h.ingest(job)
	for name, c := range map[string]jobevent.Command{
		"number 0":            {JobID: job.JobID, Command: jobevent.CommandCancel},
		"a negative number":   {JobID: job.JobID, Command: jobevent.CommandCancel, Number: math.MinInt},
		"an unknown command":  {JobID: job.JobID, Command: huge, Number: 1, By: "\x00"},
		"a huge name":         {JobID: job.JobID, Command: jobevent.CommandRetry, Number: 2, By: huge},
		"a report of nothing": {Command: jobevent.CommandReport},
		"a report of oddities": {Command: jobevent.CommandReport, Reports: []jobevent.ReportJob{
			{}, {JobID: job.JobID, Version: math.MinInt64}, {JobID: job.JobID, Version: math.MaxInt64}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := fixture{t, h.Store}
			effects, err := h.Command(t.Context(), []jobevent.Command{c})
			h.wantHandled(false, effects, err)
			h.wantStatus(job, jobstate.Queued)
		})
	}
}

func TestImpossibleInstantsOfARescheduleAreRefused(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	soon := time.Now().Add(time.Hour)
	job.RunAt = &soon
	h.ingest(job)
	for name, at := range map[string]*time.Time{"none": nil, "before history": &longAgo, "when years have 5 digits": &farOff} {
		t.Run(name, func(t *testing.T) {
			h := fixture{t, h.Store}
			effects, err := h.Command(t.Context(), []jobevent.Command{
				{JobID: job.JobID, Number: 1, Command: jobevent.CommandReschedule, RunAt: at},
			})
			h.wantHandled(true, effects, err)
			if s := h.wantStatus(job, jobstate.Scheduled); s.Version != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestInvalidHeartbeatsAreRefusedOrDoNoHarm(t *testing.T) {
	h := newFixture(t)
	job := newJob()
	h.ingest(job)
	held := func(attempt int, at *time.Time) []jobevent.ListedAttempt {
		return []jobevent.ListedAttempt{{JobID: job.JobID, Attempt: attempt, StartedAt: at}, {}}
	}
	now := time.Now()
	for name, c := range map[string]struct {
		heartbeat jobevent.Heartbeat
		refused   bool
	}{
		"no name":                              {jobevent.Heartbeat{Slots: 1}, true},
		"a name with NUL":                      {jobevent.Heartbeat{WorkerID: "a\x00"}, true},
		"a huge name":                          {jobevent.Heartbeat{WorkerID: strings.Repeat("x", 10<<20)}, true},
		"negative slots":                       {jobevent.Heartbeat{WorkerID: "a", Slots: -1}, true},
		"nothing":                              {jobevent.Heartbeat{WorkerID: "a"}, false},
		"a negative rate":                      {jobevent.Heartbeat{WorkerID: "a", Rate: -math.MaxFloat64}, false},
		"an attempt beyond its column":         {jobevent.Heartbeat{WorkerID: "a", Attempts: held(1<<32+1, &now)}, false},
		"an attempt started long ago":          {jobevent.Heartbeat{WorkerID: "a", Attempts: held(1, &longAgo)}, true},
		"an attempt started in the far future": {jobevent.Heartbeat{WorkerID: "a", Attempts: held(1, &farOff)}, true},
		"more attempts than a worker runs":     {jobevent.Heartbeat{WorkerID: "a", Attempts: make([]jobevent.ListedAttempt, 100_000)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := fixture{t, h.Store}
			effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{c.heartbeat})
			h.wantHandled(c.refused, effects, err)
			h.wantStatus(job, jobstate.Queued)
		})
	}
}

func TestAWorkerWithExaggeratedFiguresGetsNoMoreThanItsRoom(t *testing.T) {
	h := newFixture(t)
	heartbeat := jobevent.Heartbeat{
		WorkerID: "a", Slots: 3, Partitions: map[string][]int32{"default": {-1, jobevent.MaxRunPartitions, 70_000, 4, 4}},
	}
	for range 2 {
		effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{heartbeat})
		h.must(effects, err)
		h.ingest(newJobs(5)...)
	}
	var out, elsewhere int
	err := h.pool.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE partition <> 4) FROM attempts_out").
		Scan(&out, &elsewhere)
	if err != nil || out != 3 || elsewhere != 0 {
		t.Errorf("%d out, %d of them elsewhere (%v)", out, elsewhere, err)
	}
	heartbeat.Slots, heartbeat.Rate = math.MaxInt, math.MaxFloat64
	effects, err := h.Heartbeat(t.Context(), []jobevent.Heartbeat{heartbeat})
	if h.must(effects, err); len(effects.Runs) != 7 {
		t.Errorf("%d out for a worker without limits", len(effects.Runs))
	}
}

func TestOpenRefusesImpossibleSettings(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"LEASE": {MaxLost: 3}, "MAX_LOST": {Lease: time.Second, MaxLost: -1},
	} {
		if _, err := Open(t.Context(), "postgres://nowhere", cfg); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
