package localkafka_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
)

// TestMain lets the test binary also be the process that runs a broker and is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LOCALKAFKA_TEST_DIR"); dir != "" {
		serveUntilKilled(dir)
	}
	// sarama's metrics keep one goroutine for the life of the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

func TestEmbeddedKeepsRecordsAndOffsetsOverStopAndKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := localkafka.StartEmbedded(localkafka.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	createTopic(t, s.Brokers())
	produce(t, s.Brokers(), 0, 100)
	if _, err := localkafka.StartEmbedded(localkafka.Config{Dir: dir}); err == nil {
		t.Fatal("two brokers on one folder")
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	serveKilled(t, dir, func(brokers []string) {
		produce(t, brokers, 100, 200)
		commit(t, brokers, 150)
	})
	again, err := localkafka.StartEmbedded(localkafka.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, again)
	consume(t, again.Brokers(), 200)
	if got := committed(t, again.Brokers()); got != 150 {
		t.Errorf("committed offset %d, want 150", got)
	}
	produce(t, again.Brokers(), 200, 201)
}

func TestApacheKeepsRecordsOverARestart(t *testing.T) {
	t.Parallel()
	if os.Getenv("KAFKA_APACHE") != "1" {
		t.Skip("needs KAFKA_APACHE=1, java and mvn")
	}
	cfg := localkafka.Config{Dir: t.TempDir(), Progress: func(line string) { t.Log(line) }}
	s, err := localkafka.StartApache(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	createTopic(t, s.Brokers())
	produce(t, s.Brokers(), 0, 100)
	commit(t, s.Brokers(), 50)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again, err := localkafka.StartApache(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, again)
	consume(t, again.Brokers(), 100)
	if got := committed(t, again.Brokers()); got != 50 {
		t.Errorf("committed offset %d, want 50", got)
	}
}

func TestATakenPortIsAnError(t *testing.T) {
	t.Parallel()
	s, err := localkafka.StartEmbedded(localkafka.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, s)
	var port int
	if _, err := fmt.Sscanf(s.Brokers()[0], "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	if _, err := localkafka.StartEmbedded(localkafka.Config{Port: port}); err == nil {
		t.Error("two brokers on one port")
	}
}

// serveKilled calls use with a broker in another process on dir, and kills that process.
func serveKilled(t *testing.T, dir string, use func(brokers []string)) {
	t.Helper()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), "LOCALKAFKA_TEST_DIR="+dir)
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	use([]string{strings.TrimSpace(address)})
}

func serveUntilKilled(dir string) {
	s, err := localkafka.StartEmbedded(localkafka.Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Brokers()[0])
	select {}
}

func stopAtEnd(t *testing.T, s *localkafka.Server) {
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}
