package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
)

// base is what the functions need: a PostgreSQL server and a broker, private ones or given ones.
type base struct {
	database string                // address of the server
	postgres *localpostgres.Server // nil: the server was given
	brokers  []string              // bootstrap list
	stops    []func() error
}

// raise starts what was not given. On an error it stops everything that it has started.
func raise(ctx context.Context, o Options) (_ *base, err error) {
	b := &base{database: o.DatabaseURL, brokers: o.Brokers}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	if b.database == "" && o.wants("postgres") {
		server, err := localpostgres.Start(ctx, localpostgres.Config{
			Dir: filepath.Join(o.Dir, "postgres"), Port: o.PostgresPort, Progress: o.progress,
		})
		if err != nil {
			return nil, fmt.Errorf("start PostgreSQL: %w", err)
		}
		b.database, b.postgres, b.stops = server.URL(), server, append(b.stops, server.Stop)
	}
	if len(b.brokers) == 0 && o.wants("kafka") {
		server, err := startKafka(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("start Kafka: %w", err)
		}
		b.brokers, b.stops = server.Brokers(), append(b.stops, server.Stop)
	}
	return b, nil
}

func startKafka(ctx context.Context, o Options) (*localkafka.Server, error) {
	cfg := localkafka.Config{Dir: filepath.Join(o.Dir, "kafka-"+o.Kafka), Port: o.KafkaPort, Progress: o.progress}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	switch o.Kafka {
	case "embedded":
		return localkafka.StartEmbedded(cfg)
	case "apache":
		return localkafka.StartApache(ctx, cfg)
	default:
		return nil, fmt.Errorf("--kafka is embedded or apache, not %q", o.Kafka)
	}
}

// explain adds details from the server's log that the server does not send to its clients.
func (b *base) explain(err error) error {
	if err != nil && b.postgres != nil && b.postgres.DiskFull() {
		return fmt.Errorf("the disk of PostgreSQL's folder is full: %w", err)
	}
	return err
}

// stop stops what raise started, in reverse order.
func (b *base) stop() error {
	var errs []error
	for _, stop := range slices.Backward(b.stops) {
		errs = append(errs, stop())
	}
	b.stops = nil
	return errors.Join(errs...)
}
