package apidb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

// A meter counts what every statement reads, in a transaction or not, and its error ends the statement.
func TestAMeterCountsRowsBeforeTheyAreDecoded(t *testing.T) {
	t.Parallel()
	f := apidbtest.New(t)
	job := apidbtest.NewJob()
	job.Request.Payload = []byte(`"` + strings.Repeat("x", 100_000) + `"`)
	f.Accept(t, job)
	full := errors.New("full")
	for what, read := range map[string]func(room int64) error{
		"one row": func(room int64) error {
			_, err := f.Jobs.Job(apidb.WithMeter(t.Context(), upTo(&room, full)), apidb.Everyone, job.JobID)
			return err
		},
		"a list": func(room int64) error {
			_, _, err := f.Jobs.ListJobs(apidb.WithMeter(t.Context(), upTo(&room, full)), apidb.Everyone, jobstore.Filter{Limit: 1})
			return err
		},
		"a transaction": func(room int64) error {
			ctx := apidb.WithMeter(t.Context(), upTo(&room, full))
			return f.RawTx(ctx, func(tx pgx.Tx) error {
				var payload string
				return tx.QueryRow(ctx, "select payload from jobs where job_id = $1", job.JobID).Scan(&payload)
			})
		},
	} {
		if err := read(1 << 20); err != nil {
			t.Errorf("%s with room: %v", what, err)
		}
		if err := read(10); !errors.Is(err, full) {
			t.Errorf("%s without room: %v", what, err)
		}
	}
}

// upTo returns a meter for a number of bytes.
func upTo(room *int64, full error) func(int64) error {
	return func(bytes int64) error {
		if *room -= bytes; *room < 0 {
			return full
		}
		return nil
	}
}
