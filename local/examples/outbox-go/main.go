// Command outbox-go inserts an order and, in the same transaction, the job that confirms it. DATABASE_URL is the
// address of a database with an outbox.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	job, err := order(ctx, conn, 120)
	if err != nil {
		return err
	}
	fmt.Println(job)
	if _, err := order(ctx, conn, 0); !errors.Is(err, errNothingToPay) {
		return fmt.Errorf("an order of nothing: %w", err)
	}
	return nil // that order has neither a row nor a job
}

var errNothingToPay = errors.New("there is nothing to pay")

// order inserts an order and enqueues its job. Either both are committed, or neither.
func order(ctx context.Context, conn *pgx.Conn, total int) (job uuid.UUID, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		payload := map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": fmt.Sprintf("paid %d", total)}}}
		options := map[string]any{"tags": []string{"go"}, "orderingKey": "customer-9"}
		const enqueue = "select jobweaver.enqueue('SIMULATION', $1, $2)"
		if err := tx.QueryRow(ctx, enqueue, payload, options).Scan(&job); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		if _, err := tx.Exec(ctx, "insert into orders (total, job_id) values ($1, $2)", total, job); err != nil {
			return fmt.Errorf("insert order: %w", err)
		}
		if total == 0 {
			return errNothingToPay
		}
		return nil
	})
	return job, err
}
