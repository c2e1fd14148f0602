package edge

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// A full disk is not reported as a database that is away: the operator has to look elsewhere.
func TestFullDiskIsReported(t *testing.T) {
	t.Parallel()
	e := Public(fmt.Errorf("insert jobs: %w", &pgconn.PgError{Code: "53100", Message: "could not extend file"}))
	if e.Code != apierror.Unavailable || e.Message != "the disk of the database is full" {
		t.Errorf("answers %s: %s", e.Code, e.Message)
	}
}
