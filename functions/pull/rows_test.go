package pull

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// pgxRows counts the attempts that were claimed, whatever became of them.
func pgxRows(t *testing.T, url string) (n int, err error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	err = conn.QueryRow(t.Context(), "select count(*) from execution_attempts").Scan(&n)
	return n, err
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
