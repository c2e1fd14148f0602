package pgtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Node is a node of a plan as auto_explain logs it. A plan is represented by its first node.
type Node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Cond     string  `json:"Index Cond"`
	Loops    float64 `json:"Actual Loops"`
	Rows     float64 `json:"Actual Rows"` // of one loop
	Removed  float64 `json:"Rows Removed by Filter"`
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Cost     float64 `json:"Total Cost"`
	Plans    []Node  `json:"Plans"`
}

// Walk visits the node and all below it.
func (n Node) Walk(visit func(Node)) {
	visit(n)
	for _, child := range n.Plans {
		child.Walk(visit)
	}
}

// Plans collects the plans with which the server really ran the statements of a pool.
type Plans struct {
	mu     sync.Mutex
	byName map[string][]Node
}

// Watch is an option for pgpool.Open. It removes the timeouts, because a test fills its tables through the same pool,
// perhaps on a slow disk.
func (p *Plans) Watch() func(*pgxpool.Config) {
	return func(cfg *pgxpool.Config) {
		cfg.ConnConfig.OnNotice = p.notice
		for name, value := range map[string]string{
			"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
			"auto_explain.log_analyze": "on", "auto_explain.log_timing": "off", "auto_explain.log_buffers": "on",
			"auto_explain.log_format": "json", "auto_explain.log_level": "notice", "auto_explain.log_parameter_max_length": "0",
			"statement_timeout": "0", "transaction_timeout": "0", "idle_in_transaction_session_timeout": "0",
		} {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
}

// LookEmpty gives all tables the statistics that vacuum leaves if it finds no live row: no rows, in as many pages as
// there are. They stay until the next ANALYZE, however many rows are inserted. For such a table the planner takes
// reading a whole index for as cheap as one search.
func LookEmpty(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `UPDATE pg_class SET reltuples = 0, relallvisible = 0,
			relpages = greatest(pg_relation_size(oid) / current_setting('block_size')::int, 1)
		WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
}

// CheckSearches asserts that the generic plans of the statements that sqlc has generated into a directory search the
// tables: none of them reads a whole index or a whole table. walks has the exceptions, separated by spaces: the index
// along which a statement walks until it has found enough, and the index or table that has no other rows than those it
// needs.
func CheckSearches(t testing.TB, pool *pgxpool.Pool, dir string, walks map[string]string, tables ...string) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	walked := map[string]bool{}
	for name, sql := range statements(t, dir) {
		generic(t, conn.Conn(), sql).Walk(func(n Node) {
			switch {
			case !slices.Contains(tables, n.Relation) || n.Cond != "" || n.Type == "ModifyTable" || n.Type == "Tid Scan":
			case slices.Contains(strings.Fields(walks[name]), cmp.Or(n.Index, n.Relation)):
				walked[name] = true
			default:
				t.Errorf("%s reads all of %s by a %s of %q", name, n.Relation, n.Type, n.Index)
			}
		})
	}
	for name, index := range walks {
		if !walked[name] {
			t.Errorf("%s does not walk along %s: it is no exception", name, index)
		}
	}
}

// statements returns the statements in a directory by name.
func statements(t testing.TB, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sql.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s, %v", len(files), dir, err)
	}
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
					found[spec.Names[0].Name], err = strconv.Unquote(text.Value)
				}
			}
			return err == nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// generic returns the plan that suits any values of a statement's parameters.
func generic(t testing.TB, conn *pgx.Conn, sql string) Node {
	t.Helper()
	stmt, err := conn.Prepare(t.Context(), "explained", sql)
	if err != nil {
		t.Fatal(err)
	}
	values := strings.TrimSuffix(strings.Repeat("null,", len(stmt.ParamOIDs)), ",")
	if values != "" {
		values = "(" + values + ")"
	}
	var text []byte
	err = conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE explained"+values).Scan(&text)
	if err := errors.Join(err, conn.Deallocate(t.Context(), "explained")); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var explained []struct{ Plan Node }
	if err := json.Unmarshal(text, &explained); err != nil {
		t.Fatal(err)
	}
	return explained[0].Plan
}

// Seen returns the plans of each statement, by the name that the statement has in its .sql file.
func (p *Plans) Seen() map[string][]Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.byName)
}

// Forget begins anew.
func (p *Plans) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byName = nil
}

var queryName = regexp.MustCompile(`-- name: (\w+)`)

func (p *Plans) notice(_ *pgconn.PgConn, n *pgconn.Notice) {
	_, text, found := strings.Cut(n.Message, "plan:\n")
	var explained struct {
		Text string `json:"Query Text"`
		Plan Node   `json:"Plan"`
	}
	if !found || json.Unmarshal([]byte(text), &explained) != nil {
		return
	}
	if name := queryName.FindStringSubmatch(explained.Text); name != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.byName == nil {
			p.byName = map[string][]Node{}
		}
		p.byName[name[1]] = append(p.byName[name[1]], explained.Plan)
	}
}
