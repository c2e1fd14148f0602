package outboxdb_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is a user's database with an outbox.
type fixture struct {
	t      *testing.T
	url    string
	owner  *pgx.Conn
	outbox *outboxdb.Outbox
}

func open(t *testing.T, roles outboxdb.Roles) *fixture {
	t.Helper()
	h := &fixture{t: t, url: pgtest.Empty(t)}
	if err := outboxdb.Install(t.Context(), h.url, roles); err != nil {
		t.Fatal(err)
	}
	h.owner = h.connect(h.url)
	h.outbox = h.open(h.url)
	return h
}

func (h *fixture) open(url string) *outboxdb.Outbox {
	h.t.Helper()
	outbox, err := outboxdb.Open(h.t.Context(), url)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(outbox.Close)
	return outbox
}

func (h *fixture) connect(url string) *pgx.Conn {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), url)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (h *fixture) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.owner.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func (h *fixture) enqueue(options string) (id uuid.UUID) {
	h.t.Helper()
	const sql = `select jobweaver.enqueue('OWN', '{"a": 1}', $1)`
	if err := h.owner.QueryRow(h.t.Context(), sql, options).Scan(&id); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// waiting returns the ids of all rows, in the order in which they were inserted.
func (h *fixture) waiting() (ids []uuid.UUID) {
	h.t.Helper()
	rows, err := h.owner.Query(h.t.Context(), "select id from jobweaver.outbox order by position")
	if err != nil {
		h.t.Fatal(err)
	}
	if ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		h.t.Fatal(err)
	}
	return ids
}

// take takes a batch of which all rows are accepted, and returns their ids.
func (h *fixture) take(outbox *outboxdb.Outbox, ordered bool) (ids []uuid.UUID) {
	h.t.Helper()
	taken, err := outbox.Take(h.t.Context(), ordered, 0, outboxdb.MaxRows, accepting(func(rows []outboxdb.Row) {
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
	}))
	if err != nil || taken.Accepted != len(ids) {
		h.t.Fatalf("took %+v: %v", taken, err)
	}
	return ids
}

// accepting is a gateway that accepts all jobs.
func accepting(see func([]outboxdb.Row)) func(context.Context, []outboxdb.Row) (outboxdb.Verdict, error) {
	return func(_ context.Context, rows []outboxdb.Row) (v outboxdb.Verdict, err error) {
		see(rows)
		for _, r := range rows {
			v.Accepted = append(v.Accepted, r.Position)
		}
		return v, nil
	}
}

// role makes a role without rights, which is dropped at the end of the test, and returns its name.
func role(t *testing.T) string {
	t.Helper()
	url := pgtest.Empty(t)
	name := "Outbox " + strings.ToLower(rand.Text())
	execute := func(sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, fmt.Sprintf(sql, pgx.Identifier{name}.Sanitize())); err != nil {
			t.Fatal(err)
		}
	}
	execute("create role %s")
	t.Cleanup(func() { execute("drop role %s") })
	return name
}

// as returns the address of the database with the rights of a role.
func (h *fixture) as(role string) string {
	return h.url + "&role=" + strings.ReplaceAll(role, " ", "%20")
}
