package schedulestore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// replace calls Put for an existing schedule.
func (h *fixture) replace(t *testing.T, asked apibody.Schedule) schedulestore.Schedule {
	t.Helper()
	kept, created, err := h.Schedules.Put(t.Context(), nil, apidb.Everyone, asked, nil)
	if err != nil || created {
		t.Fatal(created, err)
	}
	return kept
}

// late sets a schedule back, so that its last tick was 5 s ago and has not fired.
func (h *fixture) late(t *testing.T) {
	t.Helper()
	h.Exec(t, "update schedules set next_at = date_trunc('second', now()) - interval '5 s', cron = '0 0 1 1 *'")
	h.Exec(t, `update schedules set cron = to_char(next_at at time zone 'UTC', 'FMSS FMMI FMHH24 FMDD FMMM "*"')`)
}

// The transaction that holds the lock fires a tick after the other has begun: the tick does not come again.
func TestATickThatFiresWhileItsScheduleIsChangedIsOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture, context.Context) (schedulestore.Schedule, error){
		"put": func(h *fixture, ctx context.Context) (schedulestore.Schedule, error) {
			kept, _, err := h.Schedules.Put(ctx, nil, apidb.Everyone, apidbtest.Schedule(t, "a", `"cron": "*/1 * * * * *"`), nil)
			return kept, err
		},
		"resume": func(h *fixture, ctx context.Context) (schedulestore.Schedule, error) {
			return h.Schedules.Resume(ctx, nil, apidb.Everyone, apidb.Key{Name: "a"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The change waits for a lock for up to a second, and longer on a busy machine.
			h := &fixture{apidbtest.At(t, pgtest.Database(t, migrations.API)+"&lock_timeout=0")}
			h.create(t, "a", eachSecond)
			h.Exec(t, "update schedules set paused = $1", name == "resume")
			type answer struct {
				schedulestore.Schedule
				err error
			}
			answered := make(chan answer, 1)
			var tick time.Time
			h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
				if _, err := c.Exec(ctx, "begin; select from schedules for update"); err != nil {
					return err
				}
				go func() {
					kept, err := change(h, ctx)
					answered <- answer{kept, err}
				}()
				for waits := 0; waits == 0; {
					err := c.QueryRow(ctx, `
						select count(*) from pg_locks
						where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))`).Scan(&waits)
					if err != nil {
						return err
					}
				}
				if _, err := c.Exec(ctx, "select pg_sleep(1 - extract(epoch from clock_timestamp()) % 1)"); err != nil {
					return err
				}
				err := c.QueryRow(ctx, `insert into schedule_ticks (schedule_id, at, outcome)
					select schedule_id, date_trunc('second', clock_timestamp()), 'skipped' from schedules returning at`).Scan(&tick)
				if err != nil {
					return err
				}
				_, err = c.Exec(ctx, "commit")
				return err
			})
			if got := <-answered; got.err != nil || !got.NextAt.After(tick) {
				t.Errorf("fired at %s, then again at %v, %v", tick, got.NextAt, got.err)
			}
		})
	}
}

func TestAClockThatIsPutBackFiresNothingTwice(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond)
	h.Ago(t, "a", 0)
	h.fire(t)
	h.Exec(t, "update schedule_ticks set at = at + interval '1 hour'")
	last := h.ticks(t, key)[0].At
	if kept := h.replace(t, apidbtest.Schedule(t, "a", `"cron": "*/1 * * * * *"`)); !kept.NextAt.Equal(last.Add(time.Second)) {
		t.Errorf("replaced, it fires at %s, before %s", kept.NextAt, last)
	}
	h.Exec(t, "update schedules set paused = true")
	if resumed, err := h.Schedules.Resume(t.Context(), nil, apidb.Everyone, key, nil); err != nil || !resumed.NextAt.Equal(last.Add(time.Second)) {
		t.Errorf("resumed, it fires at %s, before %s, %v", resumed.NextAt, last, err)
	}
}

// Whatever its cause, a repeated tick makes no second job, is not published again and does not stop its schedule.
func TestATickThatComesAgainIsOver(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", `"cron": "* * * * * *", "overlap": "cancel"`)
	h.Ago(t, "a", 0)
	h.fire(t)
	h.create(t, "b", eachSecond) // has fired nothing yet
	h.Exec(t, "update schedules set next_at = last_at, cron = '0 0 1 1 *' where name = 'a'")
	h.Exec(t, `update schedules set cron = to_char(next_at at time zone 'UTC', 'FMSS FMMI FMHH24 FMDD FMMM "*"') where name = 'a'`)
	h.Exec(t, "delete from schedule_ticks where at <> (select last_at from schedules where name = 'a')")
	h.Ago(t, "b", 0)
	fired, _ := h.fire(t)
	for _, job := range fired.Jobs {
		if by := h.ReadJob(t, job.JobID).ScheduledBy; by.Name != "b" {
			t.Errorf("published again the job of %+v", by)
		}
	}
	now, err := h.Schedules.Get(t.Context(), apidb.Everyone, key)
	if ticks := h.ticks(t, key); err != nil || len(fired.Jobs) == 0 || len(fired.Cancels) != 0 || len(ticks) != 1 || !now.NextAt.After(*now.LastAt) {
		t.Errorf("fires %+v, ticks %+v, %+v, %v", fired, ticks, now, err)
	}
}

func TestAScheduleThatCannotBeFiredStopsNoOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	bad, key := h.create(t, "bad", eachSecond)
	h.create(t, "good", eachSecond)
	h.Exec(t, fmt.Sprintf(`create function refuse() returns trigger language plpgsql as 'begin
		if new.schedule_id = ''%s'' then raise exception ''no''; end if; return new; end'`, bad.ScheduleID))
	h.Exec(t, "create trigger refuse before insert on schedule_ticks for each row execute function refuse()")
	h.Ago(t, "bad", 10*time.Second)
	h.Ago(t, "good", 0)
	began := time.Now()
	fired, next := h.fire(t)
	if len(fired.Jobs) == 0 || len(fired.Failed) != 1 || fired.Failed[0].ScheduleID != bad.ScheduleID || fired.Failed[0].Err == nil ||
		next <= 0 || next > time.Second {
		t.Fatalf("fires %+v, sleeps %s", fired, next)
	}
	h.Ago(t, "good", 10*time.Second)
	if fired, _ := h.fire(t); len(fired.Jobs) == 0 || len(fired.Failed) != 0 && time.Since(began) < time.Second {
		t.Errorf("left alone, but %+v", fired)
	}
	h.Exec(t, "drop trigger refuse on schedule_ticks")
	h.Exec(t, "delete from schedules where name = 'good'")
	for tries := 0; len(h.ticks(t, key)) == 0; tries++ { // it sleeps no longer than until the next try
		_, next := h.fire(t)
		if tries > 10 {
			t.Fatal("is not tried again")
		}
		h.Exec(t, "select pg_sleep($1)", next.Seconds())
	}
}

func TestATickIsKeptWhileItsJobRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", `"cron": "* * * * * *", "overlap": "skip"`)
	h.Ago(t, "a", 0)
	first, _ := h.fire(t)
	h.Exec(t, "delete from schedule_ticks where job_id is null")
	h.Exec(t, "update schedule_ticks set at = at - interval '31 days'")
	h.Exec(t, `insert into schedule_ticks (schedule_id, at, outcome)
		select schedule_id, date_trunc('second', now()) - n * interval '1 s', 'skipped' from schedules, generate_series(10, 1509) n`)
	forget := func() {
		t.Helper()
		if _, err := h.Schedules.DeleteOldTicks(t.Context(), uuid.Nil); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	if n := len(h.ticks(t, key)); n != 1001 {
		t.Fatalf("%d ticks are kept", n)
	}
	h.late(t)
	if second, _ := h.fire(t); len(second.Jobs) != 0 {
		t.Errorf("%+v runs beside %+v", second.Jobs, first.Jobs)
	}
	h.Exec(t, "update jobs set status = 'COMPLETED', version = 1, snapshot = '{}'")
	forget()
	if n := len(h.ticks(t, key)); n != 1000 {
		t.Errorf("%d ticks are kept of a job that has ended", n)
	}
}

func TestJobsOfSchedulesAreCountedAsAccepted(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", `"cron": "0 0 1 1 *"`)
	h.late(t)
	if fired, _ := h.fire(t); len(fired.Jobs) != 1 {
		t.Fatalf("fires %+v", fired)
	}
	if _, _, err := h.Schedules.Run(t.Context(), nil, apidb.Everyone, key, nil, apidbtest.ScheduleRules); err != nil {
		t.Fatal(err)
	}
	if err := h.Jobs.EnterAccepted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := apidbtest.One[int](t, h, "select sum(n)::int from tally_entries where what = 'ACCEPTED'"); n != 2 {
		t.Errorf("counted %d", n)
	}
}

// Replacing the job of a schedule does not change its ticks.
func TestPutOfTheSameCronDropsNoTick(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond)
	h.late(t)
	before, err := h.Schedules.Get(t.Context(), apidb.Everyone, key)
	if err != nil {
		t.Fatal(err)
	}
	asked := apidbtest.Schedule(t, "a", fmt.Sprintf(`"cron": %q, "overlap": "skip"`, before.Cron))
	asked.JobJSON = []byte(`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "new"}]}, "priority": 7}`)
	if kept := h.replace(t, asked); !kept.NextAt.Equal(*before.NextAt) || kept.Overlap != "skip" {
		t.Errorf("was to fire at %s, fires at %+v", before.NextAt, kept)
	}
	fired, _ := h.fire(t)
	if len(fired.Jobs) != 1 || fired.Jobs[0].Priority != 7 {
		t.Errorf("fires %+v", fired)
	}
}

func TestPutThatEndsAPauseSkipsIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", eachSecond+`, "paused": true, "missed": "all"`)
	h.Ago(t, "a", 10*time.Second)
	kept := h.replace(t, apidbtest.Schedule(t, "a", eachSecond+`, "missed": "all"`))
	ticks := h.ticks(t, key)
	if n := len(ticks); n < 10 || outcomes(ticks, "skipped") != n || ticks[0].Reason != "the schedule was paused" ||
		!ticks[0].At.Before(*kept.NextAt) {
		t.Errorf("fires at %s, ticks %+v", kept.NextAt, ticks)
	}
}

func TestAJobThatIsRefusedCancelsNoOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, key := h.create(t, "a", `"cron": "0 0 1 1 *", "overlap": "cancel"`)
	if _, _, err := h.Schedules.Run(t.Context(), nil, apidb.Everyone, key, nil, apidbtest.ScheduleRules); err != nil {
		t.Fatal(err)
	}
	h.late(t)
	h.Exec(t, "alter table jobs add constraint nothing check (false) not valid")
	fired, _ := h.fire(t)
	ticks := h.ticks(t, key)
	if len(fired.Jobs) != 0 || len(fired.Cancels) != 0 || outcomes(ticks, "skipped") != 1 {
		t.Errorf("fires %+v, ticks %+v", fired, ticks)
	}
}
