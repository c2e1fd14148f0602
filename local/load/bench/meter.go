package bench

import (
	"context"
	"maps"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// meter reads what processes and their PostgreSQL have used so far.
type meter struct {
	server *rig.Server
	pids   map[string]int // beside PostgreSQL's
}

// reading is what was used until an instant.
type reading struct {
	cpu      map[string]time.Duration
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
	var err error
	r.flushes, err = m.server.Flushes(ctx)
	return r, err
}

// uses is what was used for each of so many jobs since a reading, and how often the log was flushed for it.
func (r reading) uses(since reading, jobs int) (map[string]figures.Use, float64) {
	uses := map[string]figures.Use{}
	for name := range r.cpu {
		uses[name] = figures.Use{
			CPU:      float64((r.cpu[name] - since.cpu[name]).Microseconds()) / float64(jobs),
			Switches: float64(r.switches[name]-since.switches[name]) / float64(jobs),
		}
	}
	return uses, float64(r.flushes-since.flushes) / float64(jobs)
}
