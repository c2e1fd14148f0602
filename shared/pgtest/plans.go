package pgtest

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Node is a node of a plan as auto_explain logs it. A plan is represented by its first node.
type Node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
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
			"auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on", "auto_explain.log_format": "json",
			"auto_explain.log_level": "notice", "auto_explain.log_parameter_max_length": "0",
			"statement_timeout": "0", "transaction_timeout": "0", "idle_in_transaction_session_timeout": "0",
		} {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
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
