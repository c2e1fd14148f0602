package pull

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// claimed counts the attempts of the fixture that were claimed, whatever became of them. A cancel of an unclaimed attempt
// is none.
func (x *fixture) claimed() (n int) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), x.url)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = conn.Close(x.t.Context()) }()
	err = conn.QueryRow(x.t.Context(), `select count(*) from attempts
		where job_id = any ($1) and not (started_at is null and error_code is not distinct from 'WORKER.CANCELLED')`, x.ids).Scan(&n)
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
