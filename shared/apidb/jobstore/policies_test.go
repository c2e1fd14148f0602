package jobstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// policyModel is all jobs of all owners, in the order in which they were accepted.
type policyModel struct{ jobs []modelJob }

type modelJob struct {
	id       uuid.UUID
	req      jobspec.Request
	status   jobstate.Status
	attempt  int
	version  int64
	accepted time.Time
	due      time.Time
}

func (j *modelJob) active() bool { return !j.status.Terminal() }

func (j *modelJob) waiting() bool {
	return (j.status == jobstate.Scheduled || j.status == jobstate.Pending) && j.attempt == 0
}

// found returns the existing job with which a request is answered, and the policy that decides so; nil: the request
// becomes a job.
func (m *policyModel) found(req *jobspec.Request, now time.Time) (found *modelJob, by string) {
	for i := range slices.Backward(m.jobs) {
		job := &m.jobs[i]
		if u := req.Unique; u != nil && job.req.OwnerID == req.OwnerID && job.req.Unique != nil && job.req.Unique.Key == u.Key &&
			(u.For == 0 || now.Sub(job.accepted) < time.Duration(u.For)) &&
			(u.While == "" || u.While == jobspec.UniqueWhileActive && job.active() || u.While == jobspec.UniqueWhileWaiting && job.waiting()) {
			return job, jobstore.ByUnique
		}
	}
	if tail := m.tail(req); tail != nil && req.Drops() {
		return tail, jobstore.BySingleton
	}
	return nil, ""
}

// tail returns the last job of a singleton key that has not ended.
func (m *policyModel) tail(req *jobspec.Request) *modelJob {
	for i := range slices.Backward(m.jobs) {
		job := &m.jobs[i]
		if s := req.Singleton; s != nil && job.req.OwnerID == req.OwnerID && job.req.Singleton != nil && job.req.Singleton.Key == s.Key && job.active() {
			return job
		}
	}
	return nil
}

// due returns when a job is due.
func (m *policyModel) due(req *jobspec.Request, now time.Time) time.Time {
	at := now
	for i := range m.jobs {
		job := &m.jobs[i]
		if t := req.Throttle; t != nil && job.req.OwnerID == req.OwnerID && job.req.Throttle != nil && job.req.Throttle.Key == t.Key &&
			job.due.Add(t.Per()).After(at) {
			at = job.due.Add(t.Per())
		}
	}
	return at
}

// randomPolicies chooses among few keys, so that many jobs share one. Periods are odd multiples of half a step of time,
// so that no comparison is close.
func randomPolicies(r *rand.Rand) (p jobspec.Policies) {
	key := func() string { return string(rune('a' + r.IntN(3))) }
	if r.IntN(2) == 0 {
		p.Unique = &jobspec.Unique{Key: key(), While: []string{"", jobspec.UniqueWhileActive, jobspec.UniqueWhileWaiting}[r.IntN(3)]}
		if p.Unique.While == "" || r.IntN(2) == 0 {
			p.Unique.For = jobspec.Period((time.Duration(r.IntN(4))*2 + 1) * 30 * time.Minute)
		}
	}
	if r.IntN(3) == 0 {
		p.Singleton = &jobspec.Singleton{Key: key(), Else: []string{jobspec.SingletonQueue, jobspec.SingletonDrop}[r.IntN(2)]}
	}
	if r.IntN(3) == 0 {
		p.Throttle = &jobspec.Throttle{Key: key(), PerMs: (int64(r.IntN(3))*2 + 1) * 1_800_000}
	}
	return p
}

func TestPoliciesDecideAsThePlainModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h, m, r := open(t), &policyModel{}, rand.New(rand.NewPCG(seed, 1))
			for range 80 {
				switch r.IntN(4) {
				case 0:
					h.age(t, m, time.Hour)
				case 1:
					h.changeSome(t, m, r)
				default:
					h.submitSome(t, m, r)
				}
			}
		})
	}
}

// age makes all jobs older.
func (h *fixture) age(t *testing.T, m *policyModel, by time.Duration) {
	t.Helper()
	h.Exec(t, "update jobs set created_at = created_at - $1::interval, run_at = run_at - $1::interval", by)
	for i := range m.jobs {
		m.jobs[i].accepted, m.jobs[i].due = m.jobs[i].accepted.Add(-by), m.jobs[i].due.Add(-by)
	}
}

// changeSome changes the states of some jobs.
func (h *fixture) changeSome(t *testing.T, m *policyModel, r *rand.Rand) {
	t.Helper()
	for range 3 {
		if len(m.jobs) == 0 {
			return
		}
		job := &m.jobs[r.IntN(len(m.jobs))]
		job.status = []jobstate.Status{jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Retrying, jobstate.Completed, jobstate.Failed}[r.IntN(6)]
		if job.status != jobstate.Pending {
			job.attempt++
		}
		job.version++
		h.Apply(t, apidbtest.Status(job.id, job.version, job.status, apidbtest.OfAttempt(job.attempt)))
	}
}

// submitSome submits up to five jobs at once, and compares the results with the model's.
func (h *fixture) submitSome(t *testing.T, m *policyModel, r *rand.Rand) {
	t.Helper()
	jobs := make([]jobstore.NewJob, 1+r.IntN(5))
	for i := range jobs {
		jobs[i] = apidbtest.NewJob()
		jobs[i].Request.OwnerID = []string{"", "acme"}[r.IntN(2)]
		jobs[i].Request.Policies = randomPolicies(r)
	}
	accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if at := slices.IndexFunc(accepted, func(a jobstore.Accepted) bool { return a.New() }); at >= 0 {
		now = accepted[at].CreatedAt
	}
	for i := range jobs {
		a, req := &accepted[i], &jobs[i].Request
		if found, by := m.found(req, now); found != nil {
			if a.New() || a.JobID != found.id || a.DecidedBy != by || a.Status() != found.status || !a.CreatedAt.Equal(found.accepted) {
				t.Fatalf("%s: got %+v, want job %s by %s", jobspec.MarshalPolicies(req.Policies), *a, found.id, by)
			}
			continue
		}
		if !a.New() || a.JobID != jobs[i].JobID {
			t.Fatalf("%s: got %+v, want a new job", jobspec.MarshalPolicies(req.Policies), *a)
		}
		due, status := m.due(req, now), jobstate.Pending
		if due.After(now) {
			status = jobstate.Scheduled
		}
		if got := h.ReadJob(t, a.JobID); got.Status != status || a.Status() != status || due.After(now) != (a.RunAt != nil) || a.RunAt != nil && !a.RunAt.Equal(due) {
			t.Fatalf("%s: due at %v, want %s; accepted at %s", jobspec.MarshalPolicies(req.Policies), a.RunAt, due, now)
		}
		if tail := m.tail(req); (tail != nil) != (a.OrderAfter != nil) || tail != nil && *a.OrderAfter != tail.id {
			t.Fatalf("%s: its turn comes after %v, want %+v", jobspec.MarshalPolicies(req.Policies), a.OrderAfter, tail)
		}
		m.jobs = append(m.jobs, modelJob{id: a.JobID, req: *req, status: status, accepted: now, due: due})
	}
}

// The requests that wait for the first one have looked for it before its commit.
func TestARequestThatIsRepeatedAtOnceGetsItsOwnJob(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]jobspec.Policies{
		"unique":    {Unique: &jobspec.Unique{Key: "k", While: jobspec.UniqueWhileActive}},
		"singleton": {Singleton: &jobspec.Singleton{Key: "k", Else: jobspec.SingletonDrop}},
		"debounce":  {Debounce: &jobspec.Debounce{Key: "k", DelayMs: 60_000, MaxDelayMs: 60_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			submit := func(body string) <-chan jobstore.Accepted {
				job := apidbtest.Keyed("key", body)
				job.Request.Policies = policies
				answer := make(chan jobstore.Accepted, 1)
				go func() {
					accepted, err := h.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
					if err != nil {
						t.Error(err)
						accepted = make([]jobstore.Accepted, 1)
					}
					answer <- accepted[0]
				}()
				return answer
			}
			var first, same, other <-chan jobstore.Accepted
			h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
				tx, err := c.Begin(ctx)
				if err != nil {
					return err
				}
				// The first request has the lock of the policy's key, and waits for this one.
				_, err = tx.Exec(ctx, `insert into jobs
						(job_id, trace_id, job_type, queue, payload, spec, status, idempotency_key, request_hash)
					values (uuidv7(), uuidv4(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":0,"timeoutMs":1}', 'PENDING', 'key', '')`)
				if err != nil {
					return err
				}
				first = submit("body")
				h.untilBlocked(t, 1)
				same, other = submit("body"), submit("other body")
				h.untilBlocked(t, 3)
				return tx.Rollback(ctx)
			})
			job := <-first
			if a := <-same; !job.New() || !a.Replayed || a.Conflict || a.JobID != job.JobID {
				t.Errorf("the same request: %+v, the first one: %+v", a, job)
			}
			if a := <-other; !a.Conflict || a.JobID != job.JobID {
				t.Errorf("another request with the key: %+v, the first one: %+v", a, job)
			}
		})
	}
}

// untilBlocked waits until so many statements wait for locks.
func (h *fixture) untilBlocked(t *testing.T, n int) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("%d statements that wait for locks", n), func() bool {
		return apidbtest.One[int](t, h, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == n
	})
}

// A request whose policy finds another job has no job of its own, so the next one with its key repeats nothing.
func TestARequestAfterOneOfItsKeyThatAPolicyAnsweredMayBecomeAJob(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]jobspec.Policies{
		"unique":    {Unique: &jobspec.Unique{Key: "k", While: jobspec.UniqueWhileActive}},
		"singleton": {Singleton: &jobspec.Singleton{Key: "k", Else: jobspec.SingletonDrop}},
		"debounce":  {Debounce: &jobspec.Debounce{Key: "k", DelayMs: 60_000, MaxDelayMs: 60_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			first, found := apidbtest.NewJob(), apidbtest.Keyed("key", "body")
			first.Request.Policies, found.Request.Policies = policies, policies
			plain, repeats, other := apidbtest.Keyed("key", "plain"), apidbtest.Keyed("key", "plain"), apidbtest.Keyed("key", "other")
			a, err := h.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{first, found, plain, repeats, other})
			if err != nil {
				t.Fatal(err)
			}
			if !a[0].New() || a[1].JobID != first.JobID || a[1].DecidedBy != name {
				t.Errorf("the first job and a request that gets it: %+v", a[:2])
			}
			if !a[2].New() || a[3].JobID != plain.JobID || !a[3].Replayed || !a[4].Conflict {
				t.Errorf("the first job of the idempotency key, a request that repeats it, and another one: %+v", a[2:])
			}
		})
	}
}

// A key may have many jobs that have ended, and only the last ones matter.
func TestPoliciesFindTheLastJobsOfAKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := watched(t)
	for _, sql := range []string{
		"alter table jobs set (autovacuum_enabled = off)",
		`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot,
				created_at, run_at, policies)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', uuidv7(), 'COMPLETED', 1, '{}', now() - n * interval '1 s',
				now() - n * interval '1 s', '{"unique": {"key": "k"}, "throttle": {"key": "k", "perMs": 1}}'
			from generate_series(2, 20000) n`,
	} {
		if _, err := s.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, unique := range []jobspec.Unique{{While: jobspec.UniqueWhileActive}, {For: jobspec.Period(time.Second)}, {For: jobspec.Period(time.Hour), While: "WAITING"}} {
		unique.Key = "k"
		job := apidbtest.NewJob()
		job.Request.Unique, job.Request.Throttle = &unique, &jobspec.Throttle{Key: "k", PerMs: 1}
		if accepted, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job}); err != nil || !accepted[0].New() {
			t.Fatalf("got %+v, %v", accepted, err)
		}
		s.Exec(t, `update jobs set status = 'COMPLETED', version = 1, snapshot = '{}', created_at = created_at - interval '2 s' where job_id = $1`, job.JobID)
	}
	for _, name := range []string{"UniqueHolders", "ThrottleStarts"} {
		seen := plans.Seen()[name]
		if len(seen) == 0 {
			t.Errorf("%s did not run", name)
		}
		for _, plan := range seen {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation == "jobs" && (n.Index == "" || n.Rows*n.Loops > 1 || n.Removed > 0) {
					t.Errorf("%s visits the jobs by %s %s: %v rows %v times, %v for nothing", name, n.Type, n.Index, n.Rows, n.Loops, n.Removed)
				}
			})
		}
	}
}

func TestAThrottleEndsTenYearsAhead(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := func() jobstore.NewJob {
		job := apidbtest.NewJob()
		job.Request.Throttle = &jobspec.Throttle{Key: "k", PerMs: jobspec.MaxThrottlePer.Milliseconds()}
		return job
	}
	h.Accept(t, job())
	h.Exec(t, "update jobs set run_at = now() + interval '3649 days'")
	batch := []jobstore.NewJob{job(), job(), job()}
	accepted, err := h.Jobs.InsertJobs(t.Context(), batch)
	if err != nil || !accepted[0].New() || accepted[1].New() || accepted[1].Late == nil || accepted[2].Late == nil {
		t.Fatalf("got %+v, %v", accepted, err)
	}
	if _, err := h.Jobs.InsertAllJobs(t.Context(), []jobstore.NewJob{job()}); err == nil {
		t.Error("one of all was refused, and the others were accepted")
	}
}

// A job that is restored from the scheduler's row keeps only its turn, and no other policy.
func TestARestoredSingletonHasItsTurn(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := apidbtest.NewJob()
	job.Request.Singleton = &jobspec.Singleton{Key: "k", Else: jobspec.SingletonDrop}
	h.Accept(t, job)
	h.Exec(t, "update jobs set policies = null")
	if got := h.ReadJob(t, job.JobID); got.OrderingKey != "" || got.SingletonKey != "k" || got.Policies.Singleton == nil || got.Policies.Singleton.Key != "k" {
		t.Errorf("got %+v", got)
	}
	next := apidbtest.NewJob()
	next.Request.Policies = job.Request.Policies
	if a := h.Accept(t, next); a.JobID != job.JobID || a.DecidedBy != jobstore.BySingleton {
		t.Errorf("got %+v", a)
	}
}
