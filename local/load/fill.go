package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/load/rig"
)

func newFill() *cobra.Command {
	var database string
	var jobs int
	var days float64
	cmd := &cobra.Command{
		Use:   "fill",
		Short: "Copies of the ended jobs in an API database, until it has very many: to measure what reads them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := pgx.Connect(cmd.Context(), database)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(cmd.Context()))
			begin := time.Now()
			if err := fill(cmd.Context(), conn, jobs, time.Duration(days*24)*time.Hour); err != nil {
				return err
			}
			fmt.Printf("filled with %d jobs in %s\n", jobs, time.Since(begin).Round(time.Second))
			return nil
		},
	}
	cmd.Flags().StringVar(&database, "database", "", "the API's database, as its owner")
	cmd.Flags().IntVar(&jobs, "jobs", 1_000_000, "how many")
	cmd.Flags().Float64Var(&days, "days", 3, "how old the oldest is; less than retention keeps")
	return cmd
}

// fill copies all ended jobs equally often. The copies are spread evenly over the age, the newest last, as if they had
// been submitted one after the other. The counts of ended jobs do not include them.
func fill(ctx context.Context, conn *pgx.Conn, jobs int, age time.Duration) error {
	columns, err := rig.Columns(ctx, conn, "jobs")
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `create temporary table originals as
		select *, row_number() over () - 1 as n from jobs where status in ('COMPLETED', 'FAILED', 'CANCELLED')`); err != nil {
		return err
	}
	insert := "insert into jobs (" + strings.Join(columns, ", ") + ") select " + strings.Join(copied(columns), ", ") + `
		from generate_series($1::int, $2) i
		cross join lateral (select -make_interval(secs => $3 * (1 - i::float8 / $4)) as age) ages
		join originals o on o.n = i % (select count(*) from originals)`
	const page = 50_000
	for first := 1; first <= jobs; first += page {
		last := min(first+page-1, jobs)
		tag, err := conn.Exec(ctx, insert, first, last, age.Seconds(), jobs)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("there is no ended job to copy")
		}
	}
	_, err = conn.Exec(ctx, "vacuum analyze jobs")
	return err
}

// copied returns the value of each column of a copy: the copy has its own id, trace and age, and no value that must be
// unique.
func copied(columns []string) []string {
	own := map[string]string{
		"job_id": "uuidv7(age)", "trace_id": "gen_random_uuid()", "created_at": "now() + age", "updated_at": "now() + age",
		"idempotency_key": "null", "request_hash": "null", "event_source": "null", "event_id": "null", "run_again_of": "null",
	}
	values := slices.Clone(columns)
	for i, column := range columns {
		if value, ok := own[column]; ok {
			values[i] = value
		} else {
			values[i] = "o." + column
		}
	}
	return values
}
