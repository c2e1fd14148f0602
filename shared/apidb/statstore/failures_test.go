package statstore_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func failedWith(code string) func(*jobevent.Status) {
	return func(s *jobevent.Status) { s.LastError = &jobevent.Error{ErrorCode: code, Message: "no " + code} }
}

// groups reads the groups anew, without the cache.
func (h *fixture) groups(t *testing.T, owner apidb.Owner) statstore.FailureGroups {
	t.Helper()
	groups, err := statstore.New(h.Store).FailureGroups(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// checkFailures compares an owner's groups with a recount of its FAILED jobs.
func (s *simulation) checkFailures(name string, owner apidb.Owner, where string) {
	s.t.Helper()
	want, got := map[string]int64{}, map[string]int64{}
	s.Conn(s.t, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, `select job_type || ' ' || coalesce(error_code, ''), count(*) from jobs
			where status = 'FAILED' and `+where+` group by 1`)
		if err != nil {
			return err
		}
		var group string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&group, &n}, func() error {
			want[group] = n
			return nil
		})
		return err
	})
	groups := s.groups(s.t, owner)
	for i := range groups.Groups {
		g := &groups.Groups[i]
		got[g.JobType+" "+g.ErrorCode] = g.Jobs
		var failed int64
		for _, n := range g.Hours {
			failed += n
		}
		if s.days == 0 && failed < g.Jobs || g.LastAt.Before(g.FirstAt) || g.LastID == uuid.Nil || !g.IsNew(groups.At) {
			s.t.Errorf("%s: %+v", name, g)
		}
	}
	if !maps.Equal(got, want) || !groups.Complete {
		s.t.Errorf("%s: failed for %v, recounted %v", name, got, want)
	}
}

func TestAGroupOfFailuresHasItsHistoryByTheHour(t *testing.T) {
	t.Parallel()
	h := open(t)
	last := uuid.New()
	for _, ago := range []string{"0 hours", "0 hours", "1 hour", "23 hours", "24 hours", "47 hours", "48 hours"} {
		h.Exec(t, `insert into failure_entries (owner_id, job_type, error_code, kept, failed, first_at, last_at, last_id)
			select 'acme', 'MAIL', 'SMTP', 1, 1, at, at, case when $1 = '0 hours' then $2 else gen_random_uuid() end
			from (select date_trunc('hour', now(), 'UTC') - $1::interval as at) as t`, ago, last)
	}
	check := func(when string) {
		t.Helper()
		for _, owner := range []apidb.Owner{apidb.Everyone, apidb.OwnerOf("acme")} {
			groups := h.groups(t, owner)
			if len(groups.Groups) != 1 {
				t.Fatalf("%s: %+v", when, groups)
			}
			g := groups.Groups[0]
			want := [24]int64{0: 1, 22: 1, 23: 2}
			if g.Jobs != 7 || g.Hours != want || g.DayBefore != 2 || g.LastID != last || g.IsNew(groups.At) ||
				g.LastAt.Sub(g.FirstAt) != 48*time.Hour {
				t.Errorf("%s: %+v", when, g)
			}
		}
		if other := h.groups(t, apidb.OwnerOf("other")); len(other.Groups) != 0 {
			t.Errorf("%s: another owner sees %+v", when, other)
		}
	}
	check("before they are summed up")
	h.sumAll(t, 0)
	check("afterwards")
}

func TestAnErrorThatReturnsWithinAMonthIsNotNew(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Failed, apidbtest.OfAttempt(1), failedWith("SMTP")))
	if groups := h.groups(t, apidb.Everyone); len(groups.Groups) != 1 || !groups.Groups[0].IsNew(groups.At) {
		t.Errorf("at first: %+v", groups.Groups)
	}
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Running, apidbtest.OfAttempt(2), failedWith("SMTP")))
	h.sumAll(t, 0)
	if groups := h.groups(t, apidb.Everyone); len(groups.Groups) != 0 {
		t.Errorf("while it runs again: %+v", groups.Groups)
	}
	h.Exec(t, "update failures set first_at = now() - interval '29 days', last_at = now() - interval '29 days'")
	h.sumAll(t, 0)
	h.Apply(t, apidbtest.Status(id, 3, jobstate.Failed, apidbtest.OfAttempt(2), failedWith("SMTP")))
	for range 2 {
		if groups := h.groups(t, apidb.Everyone); len(groups.Groups) != 1 || groups.Groups[0].IsNew(groups.At) || groups.Groups[0].Jobs != 1 {
			t.Errorf("when it has failed again: %+v", groups.Groups)
		}
		h.sumAll(t, 0)
	}
	h.Exec(t, "delete from jobs")
	h.sumAll(t, 0)
	if n := apidbtest.One[int](t, h, "select count(*) from failures"); n != 2 { // of its owner and of all
		t.Errorf("%d rows remember it", n)
	}
	h.sumAll(t, 31*24*time.Hour)
	if n := apidbtest.One[int](t, h, "select count(*) from failures"); n != 0 {
		t.Errorf("%d rows remember it for ever", n)
	}
}

// A job can leave FAILED and come back with another code in one batch, whose statuses before the last are never stored.
func TestAJobThatFailsWithAnotherCodeMovesToItsGroup(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Failed, apidbtest.OfAttempt(1)))
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Retrying, apidbtest.OfAttempt(1)),
		apidbtest.Status(id, 3, jobstate.Failed, apidbtest.OfAttempt(2), failedWith("SMTP")))
	h.Apply(t, apidbtest.Status(id, 4, jobstate.Failed, apidbtest.OfAttempt(2), failedWith("SMTP"))) // a refused command
	groups := h.groups(t, apidb.Everyone)
	if len(groups.Groups) != 1 || groups.Groups[0].ErrorCode != "SMTP" || groups.Groups[0].Jobs != 1 || groups.Groups[0].LastID != id {
		t.Errorf("%+v", groups.Groups)
	}
}

// A job that failed while an older projection ran was never counted, and its retry counts for nothing.
func TestAFailureThatWasNotCountedLeavesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, apidbtest.NewJob()).JobID
	h.Apply(t, apidbtest.Status(id, 1, jobstate.Failed, apidbtest.OfAttempt(1), failedWith("SMTP")))
	h.Exec(t, "delete from failure_entries")
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Pending, apidbtest.OfAttempt(1)))
	for range 2 {
		if groups := h.groups(t, apidb.Everyone); len(groups.Groups) != 0 {
			t.Errorf("%+v", groups.Groups)
		}
		h.sumAll(t, 0)
	}
}

// However many codes the handlers make up, a read looks at a bounded number, by the index of the largest.
func TestOfManyGroupsTheLargestAreRead(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Exec(t, "alter table failures set (autovacuum_enabled = off)")
	h.Exec(t, `insert into failures (everyone, owner_id, job_type, error_code, kept, first_at, last_at, last_id, hours)
		select everyone, case when everyone then '' else 'acme' end, 'T' || n % 7, 'C' || n, n, now(), now(), gen_random_uuid(), '{}'
		from generate_series(1, 20000) as n, (values (true), (false)) as of (everyone)`)
	began := time.Now()
	groups := h.groups(t, apidb.OwnerOf("acme"))
	t.Logf("5000 of 20,000 groups took %s", time.Since(began))
	if len(groups.Groups) != 5000 || groups.Complete || groups.Groups[0].Jobs != 20_000 || groups.Groups[4999].Jobs != 15_001 {
		t.Errorf("%d groups, complete: %t", len(groups.Groups), groups.Complete)
	}
}

func TestFailuresAreReadAndSummedUpByIndex(t *testing.T) {
	t.Parallel()
	f, plans := apidbtest.Watched(t)
	h := &fixture{f}
	h.Exec(t, "alter table failures set (autovacuum_enabled = off)")
	h.Exec(t, `insert into failures (everyone, owner_id, job_type, error_code, kept, first_at, last_at, last_id, hours)
		select false, 'o' || n % 9, 'T' || n % 7, 'C' || n, n % 3, now(), now(), gen_random_uuid(), '{}' from generate_series(1, 3000) as n`)
	for i := range 3 {
		job := apidbtest.NewJob()
		job.Request.OwnerID = "o1"
		h.Accept(t, job)
		h.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Failed, failedWith(fmt.Sprint("C", i))))
	}
	h.groups(t, apidb.OwnerOf("o1"))
	h.sumAll(t, 0)
	h.groups(t, apidb.OwnerOf("o1"))
	seen := 0
	for name, of := range plans.Seen() {
		for _, plan := range of {
			plan.Walk(func(n pgtest.Node) {
				if n.Relation != "failures" || n.Index == "" && n.Type != "Seq Scan" {
					return
				}
				if seen++; n.Type == "Seq Scan" || n.Removed > 0 || n.Rows > 500 {
					t.Errorf("%s: %+v", name, n)
				}
			})
		}
	}
	if seen == 0 {
		t.Error("no plan was seen")
	}
}
