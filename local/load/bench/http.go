package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// httpRate is the rate of the latency, in jobs a second.
const httpRate = 100

// overHTTP compares functions that receive events over HTTP, through a broker like Knative's, with the same processes
// on Kafka, in turn.
func (b *bench) overHTTP(ctx context.Context) (err error) {
	programs := filepath.Join(b.Dir, "functions")
	if err := rig.BuildFunctions(ctx, programs); err != nil {
		return err
	}
	broker, err := rig.StartBroker(ctx, embedded, filepath.Join(b.Dir, "http-broker"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop()) }()
	var rounds []figures.HTTPRound
	for range b.Settings.Rounds {
		var round figures.HTTPRound
		for _, way := range []struct {
			http bool
			name string
			into *figures.Way
		}{{false, "Kafka", &round.Kafka}, {true, "HTTP", &round.HTTP}} {
			if *way.into, err = b.clusterRound(ctx, programs, broker, way.http); err != nil {
				return err
			}
			b.printf("%-5s %7.0f jobs/s  CPU µs a job: %s  at %d/s to start %s",
				way.name, way.into.JobsPerS, processes(way.into.CPU), httpRate, way.into.Start)
		}
		rounds = append(rounds, round)
	}
	b.results.HTTP = figures.SumUpHTTP(rounds)
	return nil
}

func (b *bench) clusterRound(
	ctx context.Context, programs string, broker *rig.Broker, http bool,
) (way figures.Way, err error) {
	dir := b.folder()
	defer func() {
		err = errors.Join(err, b.server.Clear(context.WithoutCancel(ctx)), broker.Clear(), os.RemoveAll(dir))
	}()
	cluster, err := rig.StartCluster(ctx, rig.ClusterConfig{
		Dir: dir, Programs: programs, Server: b.server, Broker: broker, HTTP: http, JobType: NoopType,
		Slots: b.Settings.Slots, SlotQueue: b.Settings.SlotQueue,
	})
	if err != nil {
		return way, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	api := apiload.New(cluster.URL)
	defer api.Close()
	used := func() map[string]time.Duration {
		cpu := map[string]time.Duration{"postgres": proctree.CPU(b.server.Pid()), "broker": proctree.CPU(broker.Pid())}
		for kind, pids := range cluster.Pids() {
			for _, pid := range pids {
				cpu[kind] += proctree.CPU(pid)
			}
		}
		return cpu
	}
	s := b.Settings
	if _, err := api.Throughput(ctx, b.noop, s.Warm, s.Clients, s.Batch); err != nil {
		return way, err
	}
	if err := b.server.Settle(ctx); err != nil {
		return way, err
	}
	before := used()
	took, err := api.Throughput(ctx, b.noop, s.Jobs, s.Clients, s.Batch)
	if err != nil {
		return way, err
	}
	way = figures.Way{JobsPerS: float64(s.Jobs) / took.Completed.Seconds(), CPU: perJob(before, used(), s.Jobs)}
	latency, err := api.Latency(ctx, apiload.Steady{Request: b.noop, Rate: httpRate, For: b.LatencyFor})
	way.Start = figures.Distribute(latency.Start)
	return way, err
}
