package bench

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/peerload"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

// peerRate is the rate of the latency, in jobs a second.
const peerRate = 100

// peers runs the same jobs on other systems that accept work over the network, in turn with JobWeaver and River.
func (b *bench) peers(ctx context.Context) error {
	for _, program := range []string{"redis-server", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			b.printf("there is no %s: this part is left out", program)
			return nil
		}
	}
	programs, err := rig.BuildPeers(ctx, filepath.Join(b.Dir, "peers"), b.server)
	if err != nil {
		return err
	}
	names := append([]string{embedded, figures.Yardstick}, rig.PeerNames...)
	var rounds []figures.PeerRound
	for range b.Settings.Rounds {
		for _, name := range names {
			round, err := b.peerRound(ctx, programs, name)
			if err != nil {
				return err
			}
			b.printf("%-16s %7.0f jobs/s  %5.0f µs of CPU a job  at %d/s to start %s",
				name, round.JobsPerS, round.CPU, peerRate, round.Start)
			rounds = append(rounds, round)
		}
	}
	b.results.Peers = nil
	for _, name := range names {
		version := b.river.Version
		if slices.Contains(rig.PeerNames, name) {
			if version, err = programs.Version(ctx, name); err != nil {
				return err
			}
		} else if name == embedded {
			version = b.results.Machine.Revision
		}
		b.results.Peers = append(b.results.Peers, figures.SumUpPeer(name, version, rounds))
	}
	return nil
}

func (b *bench) peerRound(ctx context.Context, programs *rig.Peers, name string) (figures.PeerRound, error) {
	switch name {
	case figures.Yardstick:
		round, err := b.riverRound(ctx)
		if err != nil {
			return figures.PeerRound{}, err
		}
		latency, err := b.riverLatency(ctx, peerRate)
		return peerRoundOf(round, latency), err
	case embedded:
		var round figures.Round
		var latency figures.Latency
		err := b.withSystem(ctx, b.server, nil, func(sys *system) (err error) {
			if err := b.warm(ctx, sys); err != nil {
				return err
			}
			if round, err = b.timed(ctx, sys, b.Settings.Jobs); err != nil {
				return err
			}
			latency, err = b.latencyAt(ctx, sys, peerRate)
			return err
		})
		round.Contestant = embedded
		return peerRoundOf(round, latency), err
	default:
		return b.onPeer(ctx, programs, name)
	}
}

func peerRoundOf(round figures.Round, latency figures.Latency) figures.PeerRound {
	cpu := 0.
	for process, micros := range round.CPU {
		if process != "load" {
			cpu += micros
		}
	}
	return figures.PeerRound{Name: round.Contestant, JobsPerS: round.JobsPerS, CPU: cpu, Start: latency.Start}
}

func (b *bench) onPeer(ctx context.Context, programs *rig.Peers, name string) (round figures.PeerRound, err error) {
	dir := b.folder()
	peer, err := programs.Start(ctx, name, dir, b.Settings.Slots)
	if err != nil {
		return round, err
	}
	defer func() {
		err = errors.Join(err, peer.Stop(), b.server.Clear(context.WithoutCancel(ctx)), os.RemoveAll(dir))
	}()
	used := func() time.Duration {
		cpu := proctree.CPU(peer.Pid())
		if peer.OnSQL {
			cpu += proctree.CPU(b.server.Pid())
		}
		return cpu
	}
	s := b.Settings
	client := peerload.New(peer.URL, peer.Pushes)
	defer client.Close()
	if _, err := client.Throughput(ctx, s.Warm, s.Clients, s.Batch); err != nil {
		return round, err
	}
	if err := b.server.Settle(ctx); err != nil {
		return round, err
	}
	before := used()
	took, err := client.Throughput(ctx, s.Jobs, s.Clients, s.Batch)
	if err != nil {
		return round, err
	}
	round = figures.PeerRound{
		Name: name, JobsPerS: float64(s.Jobs) / took.Seconds(),
		CPU: float64((used() - before).Microseconds()) / float64(s.Jobs),
	}
	starts, err := client.Steady(ctx, peerRate, b.LatencyFor)
	round.Start = figures.Distribute(starts)
	return round, err
}
