package jobstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// The insert waits for the deletion, which its snapshot does not show.
func TestJobWhoseIDIsThatOfAJobThatIsJustDeletedIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	made := f.Accept(t, apidbtest.NewJob())
	job := apidbtest.Keyed(made.JobID.String(), "body")
	job.JobID, job.Request.JobID = made.JobID, made.JobID
	answered := make(chan jobstore.Accepted, 1)
	f.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for _, sql := range []string{
				"insert into deleted_jobs (job_id) values ($1)", "delete from jobs where job_id = $1",
			} {
				if _, err := tx.Exec(ctx, sql, made.JobID); err != nil {
					return err
				}
			}
			go func() {
				accepted, err := f.Jobs.InsertJobs(ctx, []jobstore.NewJob{job})
				if err != nil {
					t.Error(err)
					accepted = make([]jobstore.Accepted, 1)
				}
				answered <- accepted[0]
			}()
			f.Conn(t, func(_ context.Context, c *pgx.Conn) error {
				pgtest.UntilBlocked(t, c.QueryRow)
				return nil
			})
			return nil
		})
	})
	if a := <-answered; a.Late == nil || a.New() {
		t.Errorf("accepted as %+v", a)
	}
	if n := apidbtest.One[int](t, f, "select count(*) from jobs"); n != 0 {
		t.Errorf("%d jobs", n)
	}
}
