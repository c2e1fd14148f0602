package bench

import (
	"context"
	"maps"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// meter reads how much processes and their PostgreSQL have used so far.
type meter struct {
	server *rig.Server
	pids   map[string]int // beside PostgreSQL's
}

// reading is the use until an instant.
type reading struct {
	cpu      map[string]time.Duration
	database map[string]time.Duration
	switches map[string]int64
	flushes  int64
}

func (m meter) read(ctx context.Context) (reading, error) {
	r := reading{cpu: map[string]time.Duration{}, switches: map[string]int64{}}
	pids := map[string]int{"postgres": m.server.Pid()}
	maps.Copy(pids, m.pids)
	for name, pid := range pids {
		r.cpu[name], r.switches[name] = proctree.CPU(pid), proctree.Switches(pid)
	}
	r.database = proctree.Databases(m.server.Pid())
	var err error
	r.flushes, err = m.server.Flushes(ctx)
	return r, err
}

// since returns the use per job after an earlier reading.
func (r reading) since(before reading, jobs int) figures.Latency {
	uses := map[string]figures.Use{}
	for name := range r.cpu {
		uses[name] = figures.Use{
			CPU:      float64((r.cpu[name] - before.cpu[name]).Microseconds()) / float64(jobs),
			Switches: float64(r.switches[name]-before.switches[name]) / float64(jobs),
		}
	}
	return figures.Latency{
		Uses: uses, Databases: perJob(before.database, r.database, jobs),
		Flushes: float64(r.flushes-before.flushes) / float64(jobs),
	}
}
