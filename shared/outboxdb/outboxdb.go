package outboxdb

import (
	"context"
	_ "embed" // statements
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

const (
	// MaxRows and MaxBytes bound a batch, below the gateway's own limits of 1,000 jobs and 16 MiB.
	MaxRows = 500
	// MaxBytes bounds the payloads and options of a batch as JSON, including what encloses them.
	MaxBytes = 8 << 20
	// ManyRows is the least size of a batch during whose submit commits wake no relay. A relay that takes so many rows
	// must look again by itself, at once and for some time afterwards.
	ManyRows = 100
	// Connections is the most connections of a relay to one database: those for its passes, and one that listens.
	Connections = 5
	// idleMost is how long a transaction may wait for the gateway's answer. If the relay freezes then, the server ends
	// its session, and others get its rows.
	idleMost = 20 * time.Second
)

//go:embed take.sql
var takeSQL string

//go:embed reject.sql
var rejectSQL string

// The advisory locks, in addition to that of Install (3). A relay that takes many rows holds lock 1, which outbox.sql
// names, too. The relay that takes rows with an orderingKey holds lock 2.
const (
	lockBusy    = "select pg_try_advisory_xact_lock(1785164650, 1)"
	lockOrdered = "select pg_try_advisory_xact_lock(1785164650, 2)"
)

// ErrNotInstalled is the error of a database without an outbox.
var ErrNotInstalled = errors.New("there is no outbox in this database: run jobweaver outbox install")

// ErrDatabase is wrapped by every error of Take that is not an error of submit.
var ErrDatabase = errors.New("database")

// Outbox is the outbox of one database.
type Outbox struct {
	pool *pgxpool.Pool
	name string
}

// Open makes an Outbox that looks for its server when it is first used.
func Open(ctx context.Context, url string) (*Outbox, error) {
	name := ""
	own := func(cfg *pgxpool.Config) {
		cfg.MaxConns = Connections
		cfg.MinConns = 0
		at := &cfg.ConnConfig.Config
		name = fmt.Sprintf("%s:%d/%s", at.Host, at.Port, at.Database)
		if _, given := at.RuntimeParams["idle_in_transaction_session_timeout"]; !given {
			at.RuntimeParams["idle_in_transaction_session_timeout"] = idleMost.String()
		}
	}
	pool, err := pgpool.Lazy(ctx, url, pgpool.ApplicationName("jobweaver-relay"), pgpool.IndexOnly(),
		pgpool.UsersDatabase(), own)
	if err != nil {
		return nil, err
	}
	return &Outbox{pool: pool, name: name}, nil
}

// Name returns the database as host:port/database, for logs and metrics.
func (o *Outbox) Name() string { return o.name }

// Close closes the connections.
func (o *Outbox) Close() { o.pool.Close() }

// Listen calls wake once it listens, and then whenever rows were committed, until ctx or the connection ends.
func (o *Outbox) Listen(ctx context.Context, wake func()) error {
	return pgpool.Listen(ctx, o.pool, "jobweaver_outbox", wake)
}

// Row is a job that waits.
type Row struct {
	Position int64
	ID       uuid.UUID
	JobType  string
	Payload  string // JSON
	Options  string // a JSON object
}

// Rejection is why a row was refused for good.
type Rejection struct {
	Status  int
	Code    string
	Message string
}

// Verdict is the result of a batch. Rows that it does not name stay.
type Verdict struct {
	Accepted []int64 // positions
	Rejected map[int64]Rejection
}

// Reject adds a row to the rejected ones.
func (v *Verdict) Reject(position int64, why Rejection) {
	if v.Rejected == nil {
		v.Rejected = map[int64]Rejection{}
	}
	v.Rejected[position] = why
}

// Taken is the result of a pass.
type Taken struct {
	Rows     int   // that it found
	Last     int64 // the position of the last taken row
	Accepted int
	Rejected int
}

// HasRows reports whether there is a row at a position or after it, locked or not.
func (o *Outbox) HasRows(ctx context.Context, ordered bool, from int64) (there bool, err error) {
	const sql = "select exists (select from jobweaver.outbox where ordered = $1 and position >= $2)"
	if err := o.pool.QueryRow(ctx, sql, ordered, from).Scan(&there); err != nil {
		return false, fmt.Errorf("look at the outbox of %s: %w: %w", o.name, ErrDatabase, explained(err))
	}
	return there, nil
}

// Take locks up to most rows, the first ones from a position on that no other transaction has locked. It calls submit
// to submit them, deletes the accepted rows, and moves rejected rows to outbox_rejected. All of this is one
// transaction: if the relay, its connection or the server dies meanwhile, the rows are still there. Only one relay at a
// time takes rows with an orderingKey; the others find none. If submit returns an error, its verdict is still carried
// out.
func (o *Outbox) Take(
	ctx context.Context, ordered bool, from int64, most int, submit func(context.Context, []Row) (Verdict, error),
) (taken Taken, err error) {
	var refused error
	err = pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		if ordered {
			var mine bool
			if err := tx.QueryRow(ctx, lockOrdered).Scan(&mine); err != nil || !mine {
				return err
			}
		}
		rows, err := takeRows(ctx, tx, ordered, from, most)
		if err != nil || len(rows) == 0 {
			return err
		}
		taken.Rows, taken.Last = len(rows), rows[len(rows)-1].Position
		if len(rows) >= ManyRows {
			if _, err := tx.Exec(ctx, lockBusy); err != nil {
				return err
			}
		}
		var verdict Verdict
		verdict, refused = submit(ctx, rows)
		taken.Accepted, taken.Rejected = len(verdict.Accepted), len(verdict.Rejected)
		return settle(ctx, tx, ordered, verdict)
	})
	if err != nil {
		taken.Accepted, taken.Rejected = 0, 0
		return taken, fmt.Errorf("take rows of the outbox of %s: %w: %w", o.name, ErrDatabase, explained(err))
	}
	return taken, refused
}

func takeRows(ctx context.Context, tx pgx.Tx, ordered bool, from int64, most int) (taken []Row, err error) {
	rows, err := tx.Query(ctx, takeSQL, ordered, from, min(most, MaxRows))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		var r Row
		if err := rows.Scan(&r.Position, &r.ID, &r.JobType, &r.Payload, &r.Options); err != nil {
			return nil, err
		}
		if size += len(r.Payload) + len(r.Options) + 256; size > MaxBytes && len(taken) > 0 {
			break // the remaining rows stay locked until the transaction ends
		}
		taken = append(taken, r)
	}
	rows.Close()
	return taken, rows.Err()
}

func settle(ctx context.Context, tx pgx.Tx, ordered bool, v Verdict) error {
	if len(v.Accepted) > 0 {
		const gone = "delete from jobweaver.outbox where ordered = $1 and position = any ($2)"
		if _, err := tx.Exec(ctx, gone, ordered, v.Accepted); err != nil {
			return err
		}
	}
	if len(v.Rejected) == 0 {
		return nil
	}
	var positions []int64
	var statuses []int32
	var codes, messages []string
	for position, why := range v.Rejected {
		positions, statuses = append(positions, position), append(statuses, int32(why.Status))
		codes, messages = append(codes, storable(why.Code)), append(messages, storable(why.Message))
	}
	_, err := tx.Exec(ctx, rejectSQL, ordered, positions, statuses, codes, messages)
	return err
}

// storable returns a text that every column can hold.
func storable(text string) string {
	const most = 4_000
	if len(text) > most {
		text = text[:most]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// explained replaces PostgreSQL's error about a missing schema or table by a clearer one.
func explained(err error) error {
	if pgErr := new(pgconn.PgError); errors.As(err, &pgErr) && (pgErr.Code == "3F000" || pgErr.Code == "42P01") {
		return ErrNotInstalled
	}
	return err
}

// Figures has the numbers of an outbox. Rows are counted up to CountMost.
type Figures struct {
	Waiting, Rejected int
	Oldest            time.Duration // how long ago the oldest waiting row was inserted; 0: none waits
}

// CountMost bounds the figures.
const CountMost = 10_000

//go:embed figures.sql
var figuresSQL string

// Figures counts.
func (o *Outbox) Figures(ctx context.Context) (f Figures, err error) {
	var oldest float64
	err = o.pool.QueryRow(ctx, figuresSQL, CountMost).Scan(&f.Waiting, &f.Rejected, &oldest)
	if err != nil {
		return f, fmt.Errorf("count the outbox of %s: %w", o.name, explained(err))
	}
	f.Oldest = time.Duration(oldest * float64(time.Second))
	return f, nil
}
