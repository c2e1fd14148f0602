package outboxdb

import (
	"context"
	_ "embed" // statements
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

//go:embed list.sql
var listSQL string

//go:embed retry.sql
var retrySQL string

// Entry is a row as the CLI shows it.
type Entry struct {
	JobID      uuid.UUID       `json:"jobId"`
	JobType    string          `json:"jobType"`
	Payload    json.RawMessage `json:"payload"`
	Options    json.RawMessage `json:"options"`
	CreatedAt  time.Time       `json:"createdAt"`
	RejectedAt *time.Time      `json:"rejectedAt"` // nil: it waits
	Status     *int            `json:"status"`     // the error in the gateway's answer
	ErrorCode  *string         `json:"errorCode"`
	Error      *string         `json:"error"`
}

// List returns the newest rejected rows, then the oldest waiting rows, at most most of each.
func List(ctx context.Context, url string, rejectedOnly bool, most int) ([]Entry, error) {
	return with(ctx, url, func(conn *pgx.Conn) ([]Entry, error) {
		rows, err := conn.Query(ctx, listSQL, rejectedOnly, most)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	})
}

// Retry makes rejected rows wait again, with their old ids; without ids all of them. It returns how many there were.
func Retry(ctx context.Context, url string, ids []uuid.UUID) (int, error) {
	return change(ctx, url, retrySQL, ids)
}

// Discard deletes rejected rows; without ids all of them. It returns how many there were.
func Discard(ctx context.Context, url string, ids []uuid.UUID) (int, error) {
	return change(ctx, url, "delete from jobweaver.outbox_rejected where $1::uuid[] is null or id = any ($1)", ids)
}

func change(ctx context.Context, url, sql string, ids []uuid.UUID) (int, error) {
	return with(ctx, url, func(conn *pgx.Conn) (int, error) {
		tag, err := conn.Exec(ctx, sql, ids)
		return int(tag.RowsAffected()), err
	})
}

func with[T any](ctx context.Context, url string, do func(*pgx.Conn) (T, error)) (T, error) {
	conn, err := pgpool.Connect(ctx, url)
	if err != nil {
		return *new(T), fmt.Errorf("reach the outbox: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	done, err := do(conn)
	if err != nil {
		return done, fmt.Errorf("use the outbox: %w", explained(err))
	}
	return done, nil
}
