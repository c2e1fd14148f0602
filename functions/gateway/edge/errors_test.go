package edge

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// The operator has to look elsewhere for each of these outages, and none of them is a fault of the gateway.
func TestEachOutageOfTheDatabaseHasItsSentence(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"the disk of the database is full":    &pgconn.PgError{Code: "53100", Message: "could not extend file"},
		"the database accepts no writes":      &pgconn.PgError{Code: "25006"},
		"the database refuses the password":   &pgconn.PgError{Code: "28P01"},
		"the database refuses this process":   &pgconn.PgError{Code: "28000"},
		"the database does not exist":         &pgconn.PgError{Code: "3D000"},
		"the database has no connection left": &pgconn.PgError{Code: "53300"},
		"the database starts or stops":        &pgconn.PgError{Code: "57P03"},
		"the database is too busy":            &pgconn.PgError{Code: "40001"},
		"the database cannot be reached":      context.DeadlineExceeded,
	} {
		e := Public(fmt.Errorf("insert jobs: %w", err))
		if e.Code != apierror.Unavailable || e.Message != want {
			t.Errorf("%v is answered with %s: %s", err, e.Code, e.Message)
		}
	}
	// Out of transaction ids, which has the SQLSTATE of a row that is too large.
	for routine, want := range map[string]apierror.Code{"GetNewTransactionId": apierror.Unavailable, "RelationGetBufferForTuple": apierror.InvalidJobRequest} {
		e := Public(pgpool.Classify(&pgconn.PgError{Code: "54000", Routine: routine}))
		if e.Code != want {
			t.Errorf("54000 of %s is answered with %s: %s", routine, e.Code, e.Message)
		}
	}
}
