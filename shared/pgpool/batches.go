package pgpool

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is the interface on which sqlc's queries run.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// TxInBatches is Tx with fewer round trips. Each one wakes both processes, which costs more than most statements, and a
// lock is held during all later ones. The statements that first queues travel with BEGIN; their callbacks have run when
// fn begins. Statements that return nothing can wait in later for COMMIT. first runs again whenever fn does.
// Why two round trips: docs/decisions/databases.md#a-transaction-of-the-scheduler-makes-two-round-trips
func TxInBatches(
	ctx context.Context, pool *pgxpool.Pool, first func(*pgx.Batch), fn func(now DB, later *Later) error,
) error {
	return repeated(ctx, func() error {
		pooled, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer pooled.Release()
		conn := pooled.Conn()
		defer func() { // also after a panic
			if conn.PgConn().TxStatus() != 'I' {
				_, _ = conn.Exec(ctx, "rollback") // if it fails, the pool closes the connection
			}
		}()
		begin := &pgx.Batch{}
		begin.Queue("begin")
		first(begin)
		if err := conn.SendBatch(ctx, begin).Close(); err != nil {
			return err
		}
		later := &Later{conn: conn}
		if err := fn(conn, later); err != nil {
			return err
		}
		return later.commit(ctx)
	})
}

// Later collects statements that return nothing, to send them in one round trip.
type Later struct {
	conn  *pgx.Conn
	batch pgx.Batch
}

// Flush sends what has been collected, for a statement that has to see it.
func (l *Later) Flush(ctx context.Context) error {
	if l.batch.Len() == 0 {
		return nil
	}
	batch := l.batch
	l.batch = pgx.Batch{}
	return l.conn.SendBatch(ctx, &batch).Close()
}

func (l *Later) commit(ctx context.Context) error {
	var tag pgconn.CommandTag
	l.batch.Queue("commit").Exec(func(ct pgconn.CommandTag) error {
		tag = ct
		return nil
	})
	if err := l.Flush(ctx); err != nil {
		return err
	}
	if tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// Exec collects a statement. Its error is returned by Flush, or by the transaction.
func (l *Later) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	l.batch.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

var errLater = errors.New("a statement that returns rows cannot wait for COMMIT")

// Query refuses the statement: nothing would read its rows.
func (*Later) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errLater }

// QueryRow refuses the statement likewise.
func (*Later) QueryRow(context.Context, string, ...any) pgx.Row { return refused{} }

type refused struct{}

// Scan returns the error.
func (refused) Scan(...any) error { return errLater }

// QueueOne queues a statement of sqlc that returns one row.
func QueueOne[T any](b *pgx.Batch, into *T, scan pgx.RowToFunc[T], sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectExactlyOneRow(rows, scan)
		return err
	})
}

// QueueMany queues a statement of sqlc that returns any number of rows.
func QueueMany[T any](b *pgx.Batch, into *[]T, scan pgx.RowToFunc[T], sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	})
}
