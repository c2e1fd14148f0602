package bench

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

const mib = 1 << 20

// cost is part 5. Processor time and memory are measured on the server that all parts share, with the broker in a
// process of its own; PostgreSQL's counters are read on a second server, which also counts statements.
func (b *bench) cost(ctx context.Context) error {
	result := &figures.Cost{CPU: map[string]map[string]float64{}}
	for _, kind := range b.contestants() {
		err := b.withBroker(ctx, b.server, kind, func(sys *system) error {
			round, memory, err := b.costRound(ctx, sys)
			result.CPU[kind] = round.CPU
			for i := range memory {
				memory[i].Contestant = kind
			}
			result.Memory = append(result.Memory, memory...)
			b.printf("%-9s %s", kind, processes(round.CPU))
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := errors.Join(b.stopApache(), b.server.Stop()); err != nil { // otherwise two servers would share the machine
		return err
	}
	if err := b.counted(ctx, result); err != nil {
		return err
	}
	b.results.Cost = result
	var err error
	b.server, err = rig.StartServer(ctx, filepath.Join(b.Dir, "postgres"), nil, b.print)
	return err
}

// costRound is a timed round whose memory is watched.
func (b *bench) costRound(ctx context.Context, sys *system) (figures.Round, []figures.Memory, error) {
	if err := b.warm(ctx, sys); err != nil {
		return figures.Round{}, nil, err
	}
	pids := map[string]int{"functions": sys.Pid(), "postgres": sys.server.Pid(), "broker": sys.broker.Pid()}
	memory := make([]figures.Memory, 0, len(pids))
	for _, process := range []string{"functions", "postgres", "broker"} {
		memory = append(memory, figures.Memory{Process: process, Rest: float64(proctree.Memory(pids[process])) / mib})
	}
	both, running := errgroup.WithContext(ctx)
	watching, enough := context.WithCancel(running)
	both.Go(func() error {
		look := time.NewTicker(time.Second) // reading the shared memory of a hundred processes costs the kernel some time
		defer look.Stop()
		for {
			for i := range memory {
				memory[i].Peak = max(memory[i].Peak, float64(proctree.Memory(pids[memory[i].Process]))/mib)
			}
			select {
			case <-look.C:
			case <-watching.Done():
				return nil
			}
		}
	})
	var round figures.Round
	both.Go(func() (err error) {
		defer enough()
		round, err = b.timed(running, sys, b.Settings.Jobs)
		return err
	})
	return round, memory, both.Wait()
}

// counted runs jobs on a server that counts statements, starting with empty tables.
func (b *bench) counted(ctx context.Context, result *figures.Cost) (err error) {
	counting := map[string]string{"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.max": "10000"}
	server, err := rig.StartServer(ctx, filepath.Join(b.Dir, "counting"), counting, b.print)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	broker, err := rig.StartBroker(ctx, embedded, filepath.Join(b.Dir, "counting-broker"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop()) }()
	sys, err := rig.StartSystem(ctx, rig.SystemConfig{
		Dir: b.folder(), Server: server, Broker: broker, Slots: b.Settings.Slots, SlotQueue: b.Settings.SlotQueue,
	})
	if err != nil {
		return err
	}
	before, err := server.Count(ctx)
	if err == nil {
		result.Jobs = b.Settings.Jobs
		err = b.countedJobs(ctx, sys.URL)
	}
	after, errAfter := server.Count(ctx)
	// Only a session that has ended is sure to have reported its statistics.
	if err := errors.Join(err, errAfter, sys.Stop()); err != nil {
		return err
	}
	tables, err := server.Tables(ctx)
	if err != nil {
		return err
	}
	fillCost(result, after.Minus(before), tables)
	b.printf("%s", counts(result))
	return nil
}
