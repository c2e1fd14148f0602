package workerdb

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// plan is what auto_explain says of a statement, and a node of it.
type plan struct {
	Text string `json:"Query Text"`
	Plan node   `json:"Plan"`
}

type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Loops    float64 `json:"Actual Loops"`
	Rows     float64 `json:"Actual Rows"` // of one loop
	Removed  float64 `json:"Rows Removed by Filter"`
	Hit      int     `json:"Shared Hit Blocks"`
	Plans    []node  `json:"Plans"`
}

func (n node) walk(visit func(node)) {
	visit(n)
	for _, child := range n.Plans {
		child.walk(visit)
	}
}

// explained collects the plans with which the server really ran the store's statements, by their names.
type explained struct {
	mu    sync.Mutex
	plans map[string][]plan
}

var queryName = regexp.MustCompile(`-- name: (\w+)`)

func (e *explained) notice(_ *pgconn.PgConn, n *pgconn.Notice) {
	_, text, found := strings.Cut(n.Message, "plan:\n")
	var p plan
	if !found || json.Unmarshal([]byte(text), &p) != nil {
		return
	}
	if name := queryName.FindStringSubmatch(p.Text); name != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.plans[name[1]] = append(e.plans[name[1]], p)
	}
}

func openExplained(t *testing.T, url, planning string) (*Store, *explained) {
	t.Helper()
	e := &explained{plans: map[string][]plan{}}
	pool, err := pgpool.Open(t.Context(), url, pgpool.IndexOnly(), func(cfg *pgxpool.Config) {
		cfg.ConnConfig.OnNotice = e.notice
		for name, value := range map[string]string{
			"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
			"auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on", "auto_explain.log_format": "json",
			"auto_explain.log_level": "notice", "auto_explain.log_parameter_max_length": "0",
			"plan_cache_mode": planning,
		} {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &Store{pool: pool, q: gen.New(pool)}, e
}

// With statistics and without, with 12,000 settled attempts, and with the versions and claims that a long
// transaction keeps from vacuum, every statement visits the rows that it is about, by their keys.
func TestPlansGoByTheKeys(t *testing.T) {
	t.Parallel()
	for _, statistics := range []string{"none", "old", "fresh"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t, migrations.Worker)
			s, _ := openExplained(t, url, "auto")
			exec(t, s, "ALTER TABLE execution_attempts SET (autovacuum_enabled = off)")
			exec(t, s, "ALTER TABLE claims SET (autovacuum_enabled = off)")
			if statistics == "old" {
				exec(t, s, "ANALYZE")
			}
			exec(t, s, `INSERT INTO execution_attempts
					(job_id, attempt, trace_id, queue, worker_id, timeout_ms, started_at, finished_at, outcome)
				SELECT uuidv7(), 1, uuidv7(), 'default', 'w1', 1000, now(), now(), 'completed' FROM generate_series(1, 12000)`)
			if statistics == "fresh" {
				exec(t, s, "ANALYZE")
			}
			for _, planning := range []string{"force_custom_plan", "force_generic_plan"} {
				s, e := openExplained(t, url, planning)
				long, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := long.Exec(t.Context(), "SELECT count(*) FROM workers"); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					doOfEverything(t, s)
				}
				e.check(t, planning)
				if err := long.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func exec(t *testing.T, s *Store, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// doOfEverything has each method of the store work on some hundreds of attempts.
func doOfEverything(t *testing.T, s *Store) {
	t.Helper()
	var orders []Order
	var held []Held
	var outcomes []Outcome
	now := time.Now()
	for range 300 {
		o := Order{Key: Key{uuid.Must(uuid.NewV7()), 1}, TraceID: uuid.New(), Queue: "default", TimeoutMs: 1000}
		orders = append(orders, o)
		held = append(held, Held{Key: o.Key, StartedAt: now.Add(-time.Hour)})
		outcomes = append(outcomes, Outcome{Key: o.Key, Kind: Completed, StartedAt: now, FinishedAt: now})
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	claim := func(worker string, part []Order) {
		_, err := s.Claim(t.Context(), worker, part)
		ok(err)
	}
	beat := func(worker string, held []Held) {
		_, err := s.Beat(t.Context(), Beat{WorkerID: worker, Queues: []string{}, Held: held, Answered: s.LastClaim()})
		ok(err)
	}
	settle := func(worker string, part []Outcome) {
		_, err := s.Settle(t.Context(), worker, part)
		ok(err)
	}
	judge := func() {
		_, err := s.Judge(t.Context())
		ok(err)
	}
	beat("w1", nil)
	s.careful.Store(0)
	claim("w1", orders[:200])
	claim("w2", orders[100:])
	settle("w1", outcomes[:50])
	beat("w1", held[:100])
	settle("w1", outcomes[40:60])
	_, err := s.Cancel(t.Context(), "w2", orders[60:70])
	ok(err)
	judge() // overdue
	beat("w2", nil)
	exec(t, s, "UPDATE workers SET seen_at = now() - interval '1 minute'")
	claim("w2", orders[100:110])
	judge() // lost
	judge()
	claim("w2", orders[:10])
	beat("w2", nil)
	var fresh []Order
	for range 20 {
		fresh = append(fresh, Order{Key: Key{uuid.Must(uuid.NewV7()), 1}, Queue: "default", TimeoutMs: 1000})
	}
	claim("w2", fresh)
	_, err = s.Leave(t.Context(), "w2")
	ok(err)
	_, err = s.Cleanup(t.Context())
	ok(err)
}

// check looks at how many rows of attempts a statement of at most 300 keys has gone through.
func (e *explained) check(t *testing.T, planning string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.plans) < 14 {
		t.Errorf("only %d statements were explained", len(e.plans))
	}
	for name, plans := range e.plans {
		for _, p := range plans {
			p.Plan.walk(func(n node) {
				if visited := n.Loops * (n.Rows + n.Removed); n.Relation == "execution_attempts" && visited > 2500 {
					t.Errorf("%s, %s: a %s visits %.0f attempts", name, planning, n.Type, visited)
				}
			})
			if p.Plan.Hit > 20_000 {
				t.Errorf("%s, %s: %d blocks", name, planning, p.Plan.Hit)
			}
		}
	}
}
