package pull

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// claimed counts the attempts of the fixture's queue that were claimed, whatever became of them. The instances of all
// tests read the same topic of cancels, and a cancel of an unclaimed attempt leaves a row without a
// queue.
func (x *fixture) claimed() (n int) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), x.url)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = conn.Close(x.t.Context()) }()
	err = conn.QueryRow(x.t.Context(), "select count(*) from execution_attempts where queue = $1", x.queue).Scan(&n)
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
