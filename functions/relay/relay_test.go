package relay_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestACommittedRowBecomesOneJobAndARolledBackOneNone(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	start(t, g.URL, o.url)
	var committed []uuid.UUID
	for i := range 20 {
		ids, err := o.inTransaction(t.Context(), []int{i, i + 100}, `{"queue": "default"}`, i%3 > 0)
		if err != nil {
			t.Fatal(err)
		}
		committed = append(committed, ids...)
	}
	o.awaitEmpty()
	g.wantExactly(t, committed)
	if g.replays > 0 || g.kept[0].Queue != "default" || g.kept[0].JobType != "OWN" {
		t.Errorf("%d replays; %+v", g.replays, g.kept[0])
	}
}

// Without notifications, as over some poolers, the poll finds rows.
func TestRowsAreFoundWithoutANotification(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	o.exec("alter table jobweaver.outbox disable trigger outbox_wake")
	start(t, g.URL, o.url)
	for i := range 3 {
		o.enqueue(i, `{}`)
		o.awaitEmpty()
	}
}

func TestJobsOfAKeyKeepTheirOrder(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	start(t, g.URL, o.url)
	start(t, g.URL, o.url) // a second one
	var fails int
	g.set(func(w http.ResponseWriter, _ []job) bool { // every third answer is lost
		fails++
		if fails%3 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return fails%3 == 0
	}, nil)
	const each = 100
	for i := range each {
		for _, key := range []string{"a", "b"} {
			o.enqueue(i, `{"orderingKey": "`+key+`"}`)
		}
	}
	o.awaitEmpty()
	last := map[string]int{"a": -1, "b": -1}
	for _, j := range g.kept {
		n := number(t, j)
		if n != last[j.OrderingKey]+1 {
			t.Fatalf("of key %s %d came after %d", j.OrderingKey, n, last[j.OrderingKey])
		}
		last[j.OrderingKey] = n
	}
	if len(g.kept) != 2*each || g.replays == 0 {
		t.Errorf("%d jobs, %d replays", len(g.kept), g.replays)
	}
}

func TestARejectedJobStaysWithItsError(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	refusing := true
	g.set(nil, func(j job) int {
		if refusing && number(t, j) == 1 {
			return http.StatusBadRequest
		}
		return 0
	})
	start(t, g.URL, o.url)
	ids, err := o.inTransaction(t.Context(), []int{0, 1, 2}, `{}`, true)
	if err != nil {
		t.Fatal(err)
	}
	o.awaitEmpty()
	list, err := outboxdb.List(t.Context(), o.url, true, 10)
	if err != nil || len(list) != 1 || list[0].JobID != ids[1] || *list[0].Status != 400 || *list[0].ErrorCode != "API.TEST" {
		t.Fatalf("rejected %+v, %v", list, err)
	}
	g.mu.Lock()
	refusing = false
	g.mu.Unlock()
	if n, err := outboxdb.Retry(t.Context(), o.url, nil); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	o.awaitEmpty()
	g.wantExactly(t, ids)
}

// The gateway refuses a whole batch because of one job, for example because the body is too large.
func TestABatchIsDividedUntilTheWrongJobIsFound(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	g.set(func(w http.ResponseWriter, jobs []job) bool {
		for _, j := range jobs {
			if number(t, j) == 13 {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				_, _ = w.Write([]byte(`{"status": 413, "errorCode": "API.PAYLOAD_TOO_LARGE", "message": "too large"}`))
				return true
			}
		}
		return false
	}, nil)
	var payloads []int
	for i := range 40 {
		payloads = append(payloads, i)
	}
	if _, err := o.inTransaction(t.Context(), payloads, `{}`, true); err != nil {
		t.Fatal(err)
	}
	start(t, g.URL, o.url)
	o.awaitEmpty()
	list, err := outboxdb.List(t.Context(), o.url, true, 10)
	if err != nil || len(list) != 1 || string(list[0].Payload) != "13" || *list[0].ErrorCode != "API.PAYLOAD_TOO_LARGE" {
		t.Errorf("rejected %+v, %v", list, err)
	}
}

// A job at which the gateway fails does not hold up other jobs.
func TestOneJobThatTheGatewayCannotManageHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	g.set(func(w http.ResponseWriter, jobs []job) bool {
		for _, j := range jobs {
			if number(t, j) == 0 {
				delete(g.known, j.JobID)
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
		}
		return false
	}, nil)
	for i := range 10 {
		o.enqueue(i, `{}`)
	}
	start(t, g.URL, o.url)
	await(t, "one row only", func() bool { return o.count("outbox") == 1 })
	if n := o.count("outbox_rejected"); n != 0 {
		t.Errorf("%d rows are rejected", n)
	}
}

func TestNothingIsLostOrDoubledInABadHour(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	requests := 0
	g.set(func(w http.ResponseWriter, _ []job) bool {
		requests++
		switch requests % 5 {
		case 1: // the connection breaks after the jobs were kept
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		case 3:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			return false
		}
		return true
	}, nil)
	var mu sync.Mutex
	var committed []uuid.UUID
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				options := `{}`
				if i%4 == 0 {
					options = `{"orderingKey": "k"}`
				}
				ids, err := o.inTransaction(t.Context(), []int{i, w}, options, i%5 > 0)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				committed = append(committed, ids...)
				mu.Unlock()
			}
		})
	}
	for range 5 { // relays come and go, and their connections are cut
		stop := start(t, g.URL, o.url)
		start(t, g.URL, o.url)
		g.mu.Lock()
		seen := g.requests
		g.mu.Unlock()
		g.await(t, "another request", func() bool { return g.requests > seen || len(g.kept) == 320 })
		o.exec(`select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name = 'jobweaver-relay'`)
		stop()
	}
	writers.Wait()
	o.awaitEmpty()
	g.wantExactly(t, committed)
	if n := o.count("outbox_rejected"); n != 0 {
		t.Errorf("%d rows are rejected", n)
	}
}

func TestADatabaseThatComesLaterIsServed(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	o.exec("alter schema jobweaver rename to later")
	start(t, g.URL, o.url)
	o.exec("alter schema later rename to jobweaver")
	id := o.enqueue(1, `{}`)
	o.awaitEmpty()
	g.wantExactly(t, []uuid.UUID{id})
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "databases")
	if err := os.WriteFile(file, []byte("# none\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := secret.Of("postgres://relay@127.0.0.1:1/x?sslmode=disable")
	for name, c := range map[string]struct {
		cfg  relay.Config
		want string
	}{
		"no database":          {relay.Config{GatewayURL: "http://x"}, "RELAY_DATABASES_FILE, RELAY_DATABASE_URL: neither"},
		"none in the file":     {relay.Config{GatewayURL: "http://x", DatabasesFile: file}, "neither names"},
		"no file":              {relay.Config{GatewayURL: "http://x", DatabasesFile: file + "x"}, "RELAY_DATABASES_FILE: open"},
		"no URL of a gateway":  {relay.Config{GatewayURL: "localhost:8080", Database: good}, "GATEWAY_URL: must be"},
		"no CA":                {relay.Config{GatewayURL: "http://x", Database: good, GatewayCAFile: file + "x"}, "GATEWAY_CA_FILE"},
		"no address of a base": {relay.Config{GatewayURL: "http://x", Database: secret.Of("postgres://a:p@ss@h/x y")}, "address 1"},
	} {
		f, err := relay.New(t.Context(), c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "p@ss") {
			t.Errorf("%s: %v", name, err)
		}
		if f != nil {
			f.Close()
		}
	}
	away := "postgres://relay@db.example/shop?sslmode=require"
	if err := os.WriteFile(file, []byte("# one\n"+away+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := relay.New(t.Context(), relay.Config{GatewayURL: "http://jobs.example", DatabasesFile: file, Database: good})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if plain := f.Plain(); len(plain) != 2 {
		t.Errorf("in plain text are %v", plain)
	}
}

// An idle relay polls once a second, and a commit wakes it long before that.
func TestACommitIsSubmittedAtOnce(t *testing.T) {
	t.Parallel()
	g, o := openGateway(t), openOutbox(t)
	start(t, g.URL, o.url)
	o.enqueue(0, `{}`)
	o.awaitEmpty()
	quickest := time.Hour
	for i := range 20 {
		began := time.Now()
		o.enqueue(i, `{}`)
		g.await(t, "the job", func() bool { return len(g.kept) == i+2 })
		quickest = min(quickest, time.Since(began))
	}
	if quickest > 200*time.Millisecond {
		t.Errorf("the quickest of 20 commits took %s to be submitted", quickest)
	}
}

func number(t *testing.T, j job) (n int) {
	t.Helper()
	for _, digit := range string(j.Payload) {
		n = 10*n + int(digit-'0')
	}
	return n
}
