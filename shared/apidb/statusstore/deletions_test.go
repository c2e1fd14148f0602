package statusstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// The deletion's snapshot is older than rows that are committed while it waits for the job.
func TestWhatArrivesWhileADeletionWaitsForItsJobGoesWithTheJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	job, other := h.Accept(t, apidbtest.NewJob()), h.Accept(t, apidbtest.NewJob())
	insert := []string{
		"insert into commands (job_id, number, command, by_whom) values ($1, 1, 'cancel', '')",
		"insert into callbacks (job_id, attempt, outcome, body_hash) values ($1, 1, 'completed', '')",
		"insert into merged_submits (owner_id, identity, job_id) values ('', uuid_send($1), $1)",
	}
	for _, sql := range insert {
		h.Exec(t, sql, other.JobID)
	}
	deleted := make(chan error, 1)
	h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select from jobs where job_id = $1 for update", job.JobID); err != nil {
				return err
			}
			go func() {
				_, err := h.Statuses.ForgetJobs(ctx, []statusstore.Gone{{JobID: job.JobID, Version: 1}})
				deleted <- err
			}()
			h.Conn(t, func(_ context.Context, c *pgx.Conn) error {
				pgtest.UntilBlocked(t, c.QueryRow)
				return nil
			})
			for _, sql := range insert {
				if _, err := tx.Exec(ctx, sql, job.JobID); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"jobs", "commands", "callbacks", "merged_submits"} {
		ofJob := apidbtest.One[int](t, h, "select count(*) from "+table+" where job_id = $1", job.JobID)
		ofOther := apidbtest.One[int](t, h, "select count(*) from "+table+" where job_id = $1", other.JobID)
		if ofJob != 0 || ofOther != 1 {
			t.Errorf("%s: %d rows of the deleted job, %d of the other", table, ofJob, ofOther)
		}
	}
}

// A retry that is answered with 202 counts, even if retention is about to delete the job.
func TestACommandThatArrivesWhileAnExpiryWaitsForItsJobKeepsTheJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	old, asked := h.Accept(t, apidbtest.NewJob()), h.Accept(t, apidbtest.NewJob())
	h.Apply(t, apidbtest.Status(old.JobID, 1, jobstate.Failed), apidbtest.Status(asked.JobID, 1, jobstate.Failed))
	walked := make(chan error, 1)
	h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "update jobs set command_seq = 1 where job_id = $1", asked.JobID); err != nil {
				return err
			}
			go func() {
				ages, inAnHour := statusstore.Ages{Failed: time.Minute}, time.Now().Add(time.Hour)
				_, err := h.Statuses.ExpireJobs(ctx, inAnHour, ages, uuid.Nil, 100)
				walked <- err
			}()
			h.Conn(t, func(_ context.Context, c *pgx.Conn) error {
				pgtest.UntilBlocked(t, c.QueryRow)
				return nil
			})
			_, err := tx.Exec(ctx, "insert into commands (job_id, number, command, by_whom) values ($1, 1, 'retry', '')", asked.JobID)
			return err
		})
	})
	if err := <-walked; err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"jobs", "commands"} {
		ids := apidbtest.One[[]uuid.UUID](t, h, "select array_agg(job_id) from "+table)
		if !slices.Equal(ids, []uuid.UUID{asked.JobID}) {
			t.Errorf("%s has rows of %v, want %s only", table, ids, asked.JobID)
		}
	}
}

// The jobs of a flow stay in the API, too, while the flow may need their outputs.
func TestTheJobsOfAFlowExpireOnceItHasEnded(t *testing.T) {
	t.Parallel()
	f := open(t)
	const day = 24 * time.Hour
	ages := statusstore.Ages{Completed: 7 * day, Failed: 30 * day, Cancelled: 7 * day}
	for status, want := range map[string]int{"RUNNING": 0, "FAILED": 0, "COMPLETED": 1, "CANCELLED": 1} {
		flow, id := f.NewID(), f.NewID()
		f.Exec(t, `insert into batches (batch_id, owner_id, status, closed_at, finished_at, counts, graph)
			values ($1, '', $2, now() - interval '9 d', case when $2 <> 'RUNNING' then now() - interval '9 d' end,
				case when $2 <> 'RUNNING' then '{}'::json end, '[]')`, flow, status)
		job := apidbtest.NewJob()
		job.JobID = id
		f.Accept(t, job)
		f.Apply(t, apidbtest.Status(id, 1, jobstate.Completed))
		f.Exec(t, `update jobs set batch_id = $2, updated_at = now() - interval '9 d', job_id = uuidv7(interval '-9 d')
			where job_id = $1`, id, flow)
		walked, err := f.Statuses.ExpireJobs(t.Context(), time.Now(), ages, uuid.Nil, 1000)
		if err != nil || int(walked.Gone) != want {
			t.Errorf("of a flow that is %s, %d are deleted, %v", status, walked.Gone, err)
		}
	}
}

// The scheduler deletes a new job with the id of a deleted one, for as long as it has the tombstone.
func TestTheIDsOfDeletedJobsAreKeptForAsLongAsTheSchedulerKeepsTombstones(t *testing.T) {
	t.Parallel()
	f := open(t)
	const day = 24 * time.Hour
	expired, old := f.NewIDAt(time.Now().Add(-9*day)), f.NewIDAt(time.Now().Add(-20*day))
	unknown, live, deleted := old, f.Accept(t, apidbtest.NewJob()), f.Accept(t, apidbtest.NewJob())
	job := apidbtest.NewJob()
	job.JobID = expired
	f.Accept(t, job)
	f.Apply(t, apidbtest.Status(expired, 1, jobstate.Completed))
	f.Exec(t, "update jobs set updated_at = now() - interval '9 d' where job_id = $1", expired)
	if _, err := f.Statuses.ExpireJobs(t.Context(), time.Now(), statusstore.Ages{Completed: 8 * day}, uuid.Nil, 100); err != nil {
		t.Fatal(err)
	}
	gone := []statusstore.Gone{{JobID: deleted.JobID, Version: 3}, {JobID: unknown, Version: 3}}
	for range 2 { // the event may come twice
		if _, err := f.Statuses.ForgetJobs(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	f.Exec(t, "update deleted_jobs set deleted_at = now() - interval '10 d' where job_id = $1", old)
	kept := func() []uuid.UUID {
		return apidbtest.One[[]uuid.UUID](t, f, "select array_agg(job_id order by job_id) from deleted_jobs")
	}
	if want := []uuid.UUID{old, expired, deleted.JobID}; !slices.Equal(kept(), want) {
		t.Errorf("kept are %v, want %v, not the live %s", kept(), want, live.JobID)
	}
	walked, err := f.Statuses.ForgetDeleted(t.Context(), time.Now(), 9*day, uuid.Nil, 1)
	if err != nil || walked.Gone != 1 || !walked.More || walked.Last != old {
		t.Errorf("walked %+v, %v", walked, err)
	}
	if want := []uuid.UUID{expired, deleted.JobID}; !slices.Equal(kept(), want) {
		t.Errorf("kept are %v, want %v", kept(), want)
	}
}
