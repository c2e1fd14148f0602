package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
)

// peerDatabase is the database of a peer that uses PostgreSQL.
const peerDatabase = "peer_bench"

// PeerNames are the job systems besides JobWeaver and River that take work over the network.
var PeerNames = []string{"asynq", "faktory", "pg-boss", "graphile-worker"}

// nodeProgram is the file of a peer that runs in Node.js, by the name of its package.
var nodeProgram = map[string]string{"pg-boss": "pgboss.js", "graphile-worker": "graphile.js"}

// goModule is the module of a peer in Go.
var goModule = map[string]string{"asynq": "github.com/hibiken/asynq", "faktory": "github.com/contribsys/faktory"}

// Peers are the built programs of local/load/peers.
type Peers struct {
	source, dir string
	server      *Server
}

// Peer is a job system behind a minimal HTTP server, in a process of its own. See local/load/peers for its requests.
type Peer struct {
	*Child
	URL    string
	Pushes bool // it pushes jobs by its own protocol
	OnSQL  bool // its jobs are in PostgreSQL
}

// BuildPeers builds the programs in Go into dir, and installs the packages of the programs in Node.js.
func BuildPeers(ctx context.Context, dir string, server *Server) (*Peers, error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	p := &Peers{source: filepath.Join(root, "local", "load", "peers"), dir: dir, server: server}
	for _, command := range [][]string{
		{"go", "build", "-C", p.source, "-o", filepath.Join(dir, "peers"), "."},
		{"go", "build", "-C", p.source, "-o", filepath.Join(dir, "faktory"), goModule["faktory"] + "/cmd/faktory"},
		{"npm", "ci", "--prefix", p.node(), "--no-audit", "--no-fund", "--ignore-scripts", "--silent"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build peers: %s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return p, nil
}

func (p *Peers) node() string { return filepath.Join(p.source, "node") }

// Version returns the version of a peer.
func (p *Peers) Version(ctx context.Context, name string) (string, error) {
	if module, inGo := goModule[name]; inGo {
		out, err := exec.CommandContext(ctx, "go", "list", "-C", p.source, "-m", "-f", "{{.Version}}", module).Output()
		return strings.TrimSpace(string(out)), err
	}
	text, err := os.ReadFile(filepath.Join(p.node(), "node_modules", name, "package.json"))
	if err != nil {
		return "", fmt.Errorf("find version of %s: %w", name, err)
	}
	var about struct {
		Version string `json:"version"`
	}
	err = json.Unmarshal(text, &about)
	return "v" + about.Version, err
}

// Start starts a peer with no jobs. dir is a new folder.
func (p *Peers) Start(ctx context.Context, name, dir string, slots int) (*Peer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	peer := &Peer{Pushes: name == "faktory"}
	var err error
	if script, inNode := nodeProgram[name]; inNode {
		peer.OnSQL = true
		var url string
		if url, err = p.server.makePeerDatabase(ctx); err != nil {
			return nil, err
		}
		peer.Child, err = start(name, dir, []string{"DATABASE_URL=" + url}, "node", filepath.Join(p.node(), script))
	} else {
		peer.Child, err = start(name, dir, nil, filepath.Join(p.dir, "peers"), name,
			"--dir", dir, "--server", filepath.Join(p.dir, "faktory"), "--slots", fmt.Sprint(slots))
	}
	if err != nil {
		return nil, err
	}
	peer.URL, err = peer.ready(ctx)
	return peer, err
}

func (s *Server) makePeerDatabase(ctx context.Context) (string, error) {
	err := s.With(ctx, "postgres", func(conn *pgx.Conn) error {
		_, errDrop := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+peerDatabase+" WITH (FORCE)")
		_, errMake := conn.Exec(ctx, "CREATE DATABASE "+peerDatabase)
		return errors.Join(errDrop, errMake)
	})
	if err != nil {
		return "", fmt.Errorf("make database of a peer: %w", err)
	}
	if err := s.Durable(ctx, peerDatabase); err != nil {
		return "", err
	}
	return migrations.WithDatabase(s.URL(), peerDatabase)
}
