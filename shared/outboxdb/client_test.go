package outboxdb_test

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of database/sql

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
)

// The statement of the Go client works with pgx and with database/sql.
func TestAClientsRequestIsEnqueued(t *testing.T) {
	t.Parallel()
	h := open(t, outboxdb.Roles{})
	statement, arguments, err := client.JobRequest{
		JobType: "INVOICE", Payload: map[string]any{"order": 17}, OrderingKey: "a", Delay: time.Minute, MaxRetryCount: new(0),
		RetryPolicy: client.RetryFixed(time.Second), Tags: []string{"b"},
	}.EnqueueSQL()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for range 2 {
		var id string
		if err := h.owner.QueryRow(t.Context(), statement, arguments...).Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	db, err := sql.Open("pgx", h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id string
	if err := db.QueryRowContext(t.Context(), statement, arguments...).Scan(&id); err != nil {
		t.Fatal(err)
	}
	ids[id] = true
	var rows int
	if err := h.owner.QueryRow(t.Context(), `select count(*) from jobweaver.outbox where ordered and payload = '{"order": 17}'
		and options @> '{"delayMs": 60000, "maxRetryCount": 0, "tags": ["b"]}'`).Scan(&rows); err != nil || rows != 3 || len(ids) != 3 {
		t.Errorf("%d rows, %d ids, %v", rows, len(ids), err)
	}
}
