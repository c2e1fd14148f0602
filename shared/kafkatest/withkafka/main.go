// Command withkafka runs a command with one Apache Kafka for all tests in it:
//
//	go run ./shared/kafkatest/withkafka go test ./shared/kafkaevent
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
)

func main() { childproc.Main("withkafka", start) }

func start(ctx context.Context) (env []string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "jobweaver-kafkatest-")
	if err != nil {
		return nil, nil, err
	}
	s, err := localkafka.StartApache(ctx, localkafka.Config{
		Dir:      dir,
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() error { return errors.Join(s.Stop(), os.RemoveAll(dir)) }
	return []string{"KAFKATEST_BROKERS=" + strings.Join(s.Brokers(), ",")}, stop, nil
}
