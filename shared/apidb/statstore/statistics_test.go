package statstore_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

var statuses = []jobstate.Status{
	jobstate.Scheduled, jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Waiting, jobstate.Retrying,
	jobstate.Completed, jobstate.Failed, jobstate.Cancelled,
}

// simulation is a random history of jobs, with its own counts.
type simulation struct {
	*fixture
	t        *testing.T
	jobs     []*testedJob
	accepted map[string]int64 // by owner
	ended    map[string]statstore.Counts
	codes    map[string]map[string]int64 // the number of failed jobs, by owner and error code
	days     time.Duration               // how far the clock for summing up is ahead
}

type testedJob struct {
	id     uuid.UUID
	owner  string
	status statusstore.PublishedStatus // the last applied status
	gone   bool
}

var tellersOwners = []string{"", "acme", "other"}

func (s *simulation) accept() {
	job := apidbtest.NewJob()
	job.Request.Queue = []string{"default", "mail"}[rand.IntN(2)]
	job.Request.JobType = []string{"EMAIL", "REPORT", "SIMULATION"}[rand.IntN(3)]
	job.Request.OwnerID = tellersOwners[rand.IntN(3)]
	if rand.IntN(4) == 0 {
		job.Request.IdempotencyKey, job.RequestHash = fmt.Sprint(rand.IntN(10)), []byte{1}
	}
	accepted := s.fixture.Accept(s.t, job)
	if !accepted.Replayed {
		s.accepted[job.Request.OwnerID]++
		s.jobs = append(s.jobs, &testedJob{id: job.JobID, owner: job.Request.OwnerID})
	}
}

// publish applies a batch of statuses of random jobs, some old, some repeated.
func (s *simulation) publish() {
	latest := map[*testedJob]statusstore.PublishedStatus{}
	var batch []statusstore.PublishedStatus
	for range rand.IntN(20) {
		job := s.jobs[rand.IntN(len(s.jobs))]
		version := max(job.status.Version+rand.Int64N(4)-1, 1)
		w := apidbtest.Status(job.id, version, statuses[rand.IntN(len(statuses))], func(w *jobevent.Status) {
			w.Attempt = job.status.Attempt + rand.IntN(2)
			if code := []string{"", "X", "Y"}[rand.IntN(3)]; code != "" {
				w.LastError = &jobevent.Error{ErrorCode: code}
			}
		})
		if version == job.status.Version {
			w = job.status // the same version is the same status
		}
		if before, twice := latest[job]; twice && before.Version == version {
			w = before
		}
		if batch = append(batch, w); w.Version >= latest[job].Version {
			latest[job] = w
		}
	}
	s.Apply(s.t, batch...)
	for job, w := range latest {
		if !job.gone && w.Version > job.status.Version {
			before, now := jobstate.Status(job.status.Status.Status), jobstate.Status(w.Status.Status)
			if now.Terminal() && (before != now || job.status.Attempt != w.Attempt) {
				s.ended[job.owner][now]++
				if now == jobstate.Failed {
					s.codes[job.owner][codeOf(w)]++
				}
			}
			job.status = w
		}
	}
}

func codeOf(w statusstore.PublishedStatus) string {
	if w.LastError == nil {
		return ""
	}
	return w.LastError.ErrorCode
}

func (s *simulation) forget() {
	job := s.jobs[rand.IntN(len(s.jobs))]
	job.gone = true
	s.Exec(s.t, "delete from jobs where job_id = $1", job.id)
}

func (s *simulation) sum() {
	if rand.IntN(3) == 0 {
		s.days += time.Duration(rand.IntN(40)) * time.Hour
	}
	s.sumAll(s.t, s.days)
}

func (h *fixture) sumAll(t *testing.T, later time.Duration) {
	t.Helper()
	if err := h.Jobs.EnterAccepted(t.Context()); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = h.Stats.SumTallies(t.Context(), time.Now().Add(later)); err != nil {
			t.Fatal(err)
		}
	}
}

// census counts all jobs that have not ended.
func (h *fixture) census(t *testing.T) {
	t.Helper()
	h.Exec(t, "delete from job_counts")
	var c statstore.Census
	for next := time.Duration(0); next == 0; {
		var err error
		if next, err = h.Stats.CountJobs(t.Context(), &c, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *fixture) recount(t *testing.T, where string) statstore.Counts {
	t.Helper()
	counts := statstore.Counts{}
	h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "select status, count(*) from jobs where "+where+" group by status")
		if err != nil {
			return err
		}
		var status string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error {
			counts[jobstate.Status(status)] = n
			return nil
		})
		return err
	})
	return counts
}

func same(a, b statstore.Counts) bool {
	none := func(_ jobstate.Status, n int64) bool { return n == 0 }
	a, b = maps.Clone(a), maps.Clone(b)
	maps.DeleteFunc(a, none)
	maps.DeleteFunc(b, none)
	return maps.Equal(a, b)
}

func TestStatisticsEqualAPlainRecount(t *testing.T) {
	t.Parallel()
	for range 3 {
		s := &simulation{fixture: open(t), t: t, accepted: map[string]int64{}, ended: map[string]statstore.Counts{}, codes: map[string]map[string]int64{}}
		for _, owner := range tellersOwners {
			s.ended[owner], s.codes[owner] = statstore.Counts{}, map[string]int64{}
		}
		s.accept()
		for range 300 {
			[]func(){s.accept, s.accept, s.publish, s.publish, s.publish, s.publish, s.forget, s.sum}[rand.IntN(8)]()
		}
		s.sumAll(t, s.days)
		s.check("")
		s.publish() // not summed up yet
		s.check("in part")
		s.census(t)
		s.longCensus(t)
		s.check("of a census")
	}
}

// longCensus makes statistics use the last census, as they do with many jobs.
func (h *fixture) longCensus(t *testing.T) {
	t.Helper()
	h.Exec(t, "update job_counts set took = '1 s'")
}

func (s *simulation) check(name string) {
	s.t.Helper()
	again := statstore.New(s.Store) // it remembers nothing
	everyone, codes := statstore.Counts{}, map[string]int64{}
	var accepted int64
	for _, owner := range tellersOwners {
		s.checkOf(again, name+" of "+owner, apidb.OwnerOf(owner), "owner_id = '"+owner+"'", s.accepted[owner], s.ended[owner])
		accepted += s.accepted[owner]
		for status, n := range s.ended[owner] {
			everyone[status] += n
		}
		for code, n := range s.codes[owner] {
			codes[code] += n
		}
		s.checkMonth(again, name+" of "+owner, apidb.OwnerOf(owner), s.ended[owner], s.codes[owner])
	}
	s.checkOf(again, name+" of everyone", apidb.Everyone, "true", accepted, everyone)
	s.checkMonth(again, name+" of everyone", apidb.Everyone, everyone, codes)
	s.checkOf(again, name+" of an owner without jobs", apidb.OwnerOf("acm"), "false", 0, statstore.Counts{})
}

// checkMonth compares a month's statistics of ended jobs with those of the simulation.
func (s *simulation) checkMonth(store *statstore.Store, name string, owner apidb.Owner, ended statstore.Counts, codes map[string]int64) {
	s.t.Helper()
	if s.days >= 30*24*time.Hour {
		return
	}
	all, err := store.Get(s.t.Context(), owner, "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	var sum int64
	for _, n := range ended {
		sum += n
	}
	if n := all.Latencies.Month.Took.Count; n != sum {
		s.t.Errorf("%s: the times of %d jobs, of which %d ended", name, n, sum)
	}
	var failed, of int64
	for _, one := range all.Failures.Month.Types {
		failed, of = failed+one.Failed, of+one.Ended
	}
	if failed != ended[jobstate.Failed] || of > sum || of < failed {
		s.t.Errorf("%s: %d of %d failed, want %v", name, failed, of, ended)
	}
	got := map[string]int64{}
	for _, one := range all.Failures.Month.Codes {
		got[one.Code] = one.Failed
	}
	if !maps.Equal(got, codes) {
		s.t.Errorf("%s: failed with %v, want %v", name, got, codes)
	}
}

// checkOf compares an owner's numbers with a recount of the jobs for which a condition holds.
func (s *simulation) checkOf(
	store *statstore.Store, name string, owner apidb.Owner, where string, accepted int64, ended statstore.Counts,
) {
	s.t.Helper()
	s.checkFailures(name, owner, where)
	all, err := store.Get(s.t.Context(), owner, "", "")
	jobs := s.recount(s.t, where)
	if err != nil || !same(all.Total, jobs) || (len(all.Types) == 0) != (len(jobs) == 0) {
		s.t.Errorf("%s: counted %v, recounted %v, %v", name, all.Total, jobs, err)
	}
	for _, queue := range []string{"default", "mail"} {
		one, err := store.Get(s.t.Context(), owner, queue, "EMAIL")
		want := s.recount(s.t, where+" and queue = '"+queue+"' and job_type = 'EMAIL'")
		if err != nil || !same(one.Total, want) || !same(one.Types["EMAIL"], want) || !same(one.Queues[queue], want) {
			s.t.Errorf("%s: %s has %v, recounted %v, %v", name, queue, one.Total, want, err)
		}
	}
	var days statstore.Flow
	for _, flow := range all.Days {
		days.Accepted, days.Completed = days.Accepted+flow.Accepted, days.Completed+flow.Completed
		days.Failed, days.Cancelled = days.Failed+flow.Failed, days.Cancelled+flow.Cancelled
	}
	if s.days < 30*24*time.Hour && (days.Accepted != accepted || days.Completed != ended[jobstate.Completed] ||
		days.Failed != ended[jobstate.Failed] || days.Cancelled != ended[jobstate.Cancelled]) {
		s.t.Errorf("%s: %+v happened, but statistics have %d accepted and %v", name, days, accepted, ended)
	}
	var oldest *uuid.UUID
	for _, job := range s.jobs {
		status := jobstate.Status(job.status.Status.Status)
		if !job.gone && oldest == nil && (owner == apidb.Everyone || owner == apidb.OwnerOf(job.owner)) &&
			(status == "" || status == jobstate.Pending || status == jobstate.Retrying) {
			oldest = &job.id
		}
	}
	if (oldest == nil) != (all.Oldest == nil) || oldest != nil && *oldest != *all.Oldest {
		s.t.Errorf("%s: the oldest is %v, want %v", name, all.Oldest, oldest)
	}
}

func TestStatisticsAddUpAtEveryMoment(t *testing.T) {
	t.Parallel()
	const jobs = 40
	h := open(t)
	ids := make([]uuid.UUID, jobs)
	for i := range ids {
		job := apidbtest.NewJob()
		job.Request.OwnerID = "acme"
		ids[i] = h.Accept(t, job).JobID
	}
	check := func(when string, ended int64) {
		t.Helper()
		again := statstore.New(h.Store) // it remembers nothing
		for _, owner := range []apidb.Owner{apidb.Everyone, apidb.OwnerOf("acme")} {
			got, err := again.Get(t.Context(), owner, "", "")
			var sum int64
			for _, n := range got.Total {
				sum += n
			}
			if err != nil || sum != jobs || got.Total[jobstate.Completed] != ended || got.AsOf == nil {
				t.Errorf("%s: %v, %v", when, got.Total, err)
			}
		}
	}
	check("before any census", 0)
	h.census(t)
	h.Apply(t, apidbtest.Status(ids[0], 1, jobstate.Completed))
	check("after a census of few jobs", 1)
	h.census(t)
	h.longCensus(t)
	h.Apply(t, apidbtest.Status(ids[1], 1, jobstate.Completed))
	h.sumAll(t, 0)
	check("after a census of many jobs", 1)
}

func TestPercentilesAreRightToATenth(t *testing.T) {
	t.Parallel()
	h := open(t)
	var statuses []statusstore.PublishedStatus
	for i := range 1000 {
		job := apidbtest.NewJob()
		job.Request.Priority = i % 2
		id := h.Accept(t, job).JobID
		sec, nsec := id.Time().UnixTime()
		started := time.Unix(sec, nsec).Truncate(time.Millisecond).Add(time.Duration(i+1) * time.Millisecond)
		finished := started.Add(time.Duration(i+1) * 10 * time.Millisecond)
		statuses = append(statuses, apidbtest.Status(id, 1, jobstate.Completed, func(s *jobevent.Status) {
			s.Attempt, s.StartedAt, s.FinishedAt = 1, &started, &finished
		}))
	}
	late := apidbtest.NewJob()
	late.Request.Delay = time.Hour
	statuses = append(statuses, apidbtest.Status(h.Accept(t, late).JobID, 1, jobstate.Cancelled))
	h.Apply(t, statuses[:500]...)
	h.sumAll(t, 0)
	h.Apply(t, statuses[500:]...)
	got, err := h.Stats.Get(t.Context(), apidb.Everyone, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]struct {
		got  statstore.Percentiles
		unit time.Duration
	}{
		"waited": {got.Latency5.Waited, time.Millisecond}, "ran": {got.Latencies.Hour.Ran, 10 * time.Millisecond},
		"took": {got.Latency5.Took, 11 * time.Millisecond},
	} {
		for of, d := range map[int]time.Duration{500: p.got.P50, 950: p.got.P95, 990: p.got.P99} {
			if off := float64(d)/float64(p.unit)/float64(of) - 1; off < -0.1 || off > 0.1 {
				t.Errorf("%s: at %d of 1000 it is %s, %.0f%% off", name, of, d, off*100)
			}
		}
		if p.got.Count != 1000 {
			t.Errorf("%s: of %d jobs", name, p.got.Count)
		}
		for i, bar := range p.got.Bars { // there is a job at each multiple of the unit
			units := func(d time.Duration) int64 { return min(int64(d/p.unit), 1000) }
			want := units(bar.UpTo) - units(bar.UpTo/2)
			if off := bar.Count - want; i > 0 && bar.UpTo != 2*p.got.Bars[i-1].UpTo || off < -want/5-1 || off > want/5+1 {
				t.Errorf("%s: %d up to %s, want %d", name, bar.Count, bar.UpTo, want)
			}
		}
	}
	if r := got.Hour1; r.Completed*3600 < 999 || r.Accepted*3600 < 1000 {
		t.Errorf("rates %+v", r)
	}
}

func TestAProcessThatSumsUpKeepsOthersFromIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Failed))
	h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "begin; select pg_advisory_xact_lock(7306371)"); err != nil {
			return err
		}
		more, err := h.Stats.SumTallies(ctx, time.Now())
		if n := apidbtest.One[int](t, h, "select count(*) from tallies"); more || n != 0 {
			t.Errorf("%d sums were made, more: %v", n, more)
		}
		if err == nil {
			_, err = c.Exec(ctx, "rollback")
		}
		return err
	})
	h.sumAll(t, 0)
	if n := apidbtest.One[int](t, h, "select count(*) from tallies where kept = 1"); n != 2 {
		t.Errorf("%d sums were made", n)
	}
}

// A projection may apply an end late, and a gateway enters what it has accepted every few seconds.
func TestJobsCountInTheMinuteOfTheirAcceptanceAndTheirEnd(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := apidbtest.One[time.Time](t, h, "select now()")
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for _, endedAt := range []*time.Time{ago(3 * time.Minute), ago(90 * time.Minute), ago(-time.Hour)} { // the scheduler's clock may be ahead
		job := apidbtest.NewJob()
		h.Accept(t, job)
		h.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Failed, func(s *jobevent.Status) { s.FinishedAt = endedAt }))
		h.Jobs.CountAccepted([]jobstore.NewJob{job}, []jobstore.Accepted{{JobID: job.JobID, CreatedAt: now.Add(-5 * time.Minute)}})
	}
	for _, when := range []string{"entered", "summed up"} {
		got, err := statstore.New(h.Store).Get(t.Context(), apidb.Everyone, "", "")
		if err != nil {
			t.Fatal(err)
		}
		failed, accepted := map[int64]int64{}, map[int64]int64{}
		for _, flow := range got.Minutes {
			minutesAgo := int64(now.Truncate(time.Minute).Sub(flow.At) / time.Minute)
			failed[max(minutesAgo, 0)] += flow.Failed
			accepted[max(minutesAgo, 0)] += flow.Accepted
		}
		if failed[0] != 1 || failed[3] != 1 || got.Failures.Day.Types[0].Failed != 3 {
			t.Errorf("%s: failed %v, %+v", when, failed, got.Failures.Day.Types)
		}
		h.sumAll(t, 0)
		if when == "summed up" && (accepted[5] != 3 || accepted[0] != 3) {
			t.Errorf("accepted %v", accepted)
		}
	}
}

func TestAQueueThatIsGoneIsNotTalliedForEver(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := apidbtest.NewJob()
	job.Request.JobType = "GONE"
	h.Accept(t, job)
	h.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Completed))
	sumUp := func() { // once for each grain
		for range 4 {
			h.sumAll(t, 3*365*24*time.Hour)
		}
	}
	sumUp()
	if n := apidbtest.One[int64](t, h, "select sum(kept)::bigint from tallies where grain = 'ever' and what = 'COMPLETED'"); n != 2 { // one tally for its owner, and one for all owners
		t.Errorf("%d are kept", n)
	}
	h.Exec(t, "delete from jobs")
	sumUp()
	if n := apidbtest.One[int](t, h, "select count(*) from tallies where grain = 'ever'"); n != 0 {
		t.Errorf("%d rows say nothing", n)
	}
}

// A stop waits for the pass that is under way, so however many types there are, a pass does only a part.
func TestManyTypesAreSummedUpInSmallParts(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Exec(t, `insert into tally_entries (at, owner_id, queue, job_type, what, n, kept, times)
		select now() - interval '3 hours' * (n % 2), 'acme', 'default', 'T' || n, 'COMPLETED', 1, 1, '{10,20,30}' from generate_series(1, 10000) as n`)
	passes, before := 0, int64(10_000)
	for more := true; more; passes++ {
		var err error
		if more, err = h.Stats.SumTallies(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		left := apidbtest.One[int64](t, h, "select count(*) from tally_entries")
		if before-left > 1000 || left > 0 && !more {
			t.Errorf("pass %d sums up %d entries, %d are left", passes, before-left, left)
		}
		before = left
	}
	if n := apidbtest.One[int64](t, h, "select sum(n)::bigint from tallies where not everyone"); n != 10_000 || before > 0 {
		t.Errorf("%d jobs are counted, %d entries are left", n, before)
	}
}
