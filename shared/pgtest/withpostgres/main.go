// Command withpostgres runs a command with one PostgreSQL for all tests in it:
//
//	go run ./shared/pgtest/withpostgres go test ./...
package main

import (
	"context"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func main() {
	childproc.Main("withpostgres", func(ctx context.Context) ([]string, func() error, error) {
		s, err := pgtest.StartServer(ctx)
		if err != nil {
			return nil, nil, err
		}
		return []string{"PGTEST_URL=" + s.URL()}, s.Stop, nil
	})
}
