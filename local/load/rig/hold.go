package rig

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Held are transactions that stay open.
type Held struct{ conns []*pgx.Conn }

// Hold opens a transaction in each of JobWeaver's databases, reads every table and leaves the transaction open, as a
// forgotten session does: no row that changes from now on can be vacuumed.
func (s *Server) Hold(ctx context.Context) (*Held, error) {
	h := &Held{}
	for _, database := range Databases() {
		conn, err := s.Connect(ctx, database)
		if err == nil {
			h.conns = append(h.conns, conn)
			err = holdAll(ctx, conn)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("hold transaction in %s: %w", database, err), h.Close())
		}
	}
	return h, nil
}

func holdAll(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, "SELECT relname FROM pg_stat_user_tables")
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.Exec(ctx, "SELECT FROM "+pgx.Identifier{name}.Sanitize()+" LIMIT 1"); err != nil {
			return err
		}
	}
	return nil
}

// Close lets go.
func (h *Held) Close() error {
	var errs []error
	for _, conn := range h.conns {
		errs = append(errs, conn.Close(context.Background()))
	}
	return errors.Join(errs...)
}
