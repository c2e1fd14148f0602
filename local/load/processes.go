package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/local/kept"
	"github.com/jobweaver/jobweaver/local/load/proctree"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
)

// startPatience is how long a process may take to be ready.
const startPatience = time.Minute

// processes compares the cost of one process with that of a process for each function.
type processes struct {
	bin, dir string
	rate     int
	during   time.Duration
}

func newProcesses() *cobra.Command {
	var p processes
	cmd := &cobra.Command{
		Use: "processes", Args: cobra.NoArgs,
		Short: "Compare jobweaver serve with a process for each function: memory, and CPU of idling and of a job",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if p.dir, err = os.MkdirTemp("", "jobweaver-processes-"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
			return p.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&p.bin, "bin", "bin", "the folder that make build fills")
	cmd.Flags().IntVar(&p.rate, "rate", 100, "jobs a second")
	cmd.Flags().DurationVar(&p.during, "for", 20*time.Second, "how long jobs are submitted, and how long nothing is")
	return cmd
}

func (p *processes) run(ctx context.Context) (err error) {
	server, err := rig.StartServer(ctx, filepath.Join(p.dir, "postgres"), nil, func(string) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	broker, err := rig.StartBroker(ctx, "embedded", filepath.Join(p.dir, "broker"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop()) }()
	fmt.Println("with their broker        processes  idle MiB  idle % of a core  CPU of a job, ms")
	for _, kind := range []struct {
		name   string
		broker *rig.Broker // nil: in the process of serve
		start  func(context.Context, *rig.Server, string) (*group, error)
	}{
		{"serve", nil, p.serve},
		{"serve, brokers apart", broker, p.serve},
		{"a process a function", broker, p.each},
	} {
		address := ""
		if kind.broker != nil {
			address = kind.broker.Address
		}
		g, err := kind.start(ctx, server, address)
		if err == nil {
			if kind.broker != nil {
				g.broker = kind.broker.Child
			}
			err = p.measure(ctx, kind.name, g)
		}
		if err := errors.Join(err, g.stop()); err != nil {
			return fmt.Errorf("measure %s: %w", kind.name, err)
		}
	}
	return nil
}

// group is an installation.
type group struct {
	all    []*rig.Child
	port   int        // of the gateway
	broker *rig.Child // nil: it is in one of all
}

func (g *group) stop() error {
	var stopping errgroup.Group
	for _, c := range g.all {
		stopping.Go(c.Stop)
	}
	return stopping.Wait()
}

// measured are the processes whose cost counts.
func (g *group) measured() []*rig.Child {
	if g.broker == nil {
		return g.all
	}
	return append(slices.Clone(g.all), g.broker)
}

func (g *group) cpu() (sum time.Duration) {
	for _, c := range g.measured() {
		sum += proctree.CPU(c.Pid())
	}
	return sum
}

func (g *group) memory() (sum int64) {
	for _, c := range g.measured() {
		sum += proctree.Memory(c.Pid())
	}
	return sum
}

// add starts a process and waits until it is ready.
func (g *group) add(
	ctx context.Context, p *processes, name, brokers string, env []string, args ...string,
) (int, error) {
	port, err := freeport.Pick()
	if err != nil {
		return 0, err
	}
	env = append(env, "AUTH=off", "HOST=127.0.0.1", "PORT="+strconv.Itoa(port), "KAFKA_BROKERS="+brokers,
		"QUEUES=default,pull", "LOG_LEVEL=warn", "SHUTDOWN_DELAY=0s")
	child, err := rig.StartProcess(name, p.dir, env, filepath.Join(p.bin, name), args...)
	if err != nil {
		return 0, err
	}
	g.all = append(g.all, child)
	for began := time.Now(); time.Since(began) < startPatience && ctx.Err() == nil; {
		if err = probe.AskReady(ctx, "127.0.0.1", port, false); err == nil {
			return port, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, fmt.Errorf("start %s: %w", name, err)
}

func (p *processes) serve(ctx context.Context, server *rig.Server, brokers string) (g *group, err error) {
	g = &group{}
	g.port, err = g.add(ctx, p, "jobweaver", brokers, []string{"DATABASE_URL=" + server.URL()}, "serve")
	return g, err
}

// each starts the functions after serve has made the databases.
func (p *processes) each(ctx context.Context, server *rig.Server, brokers string) (*group, error) {
	g := &group{}
	callbacks, webhooks := "CALLBACK_SECRETS="+kept.SigningSecret().New(), "WEBHOOK_SECRETS="+kept.SigningSecret().New()
	for _, set := range []migrations.Set{migrations.Worker, migrations.Scheduler, migrations.API} {
		url, err := migrations.WithDatabase(server.URL(), set.Database())
		if err != nil {
			return g, err
		}
		for _, name := range slices.Backward(set.Functions) { // the gateway last
			if g.port, err = g.add(ctx, p, name, brokers, []string{"DATABASE_URL=" + url, callbacks, webhooks}); err != nil {
				return g, err
			}
		}
	}
	return g, nil
}

// measure prints the cost of an idle installation, and of its jobs.
func (p *processes) measure(ctx context.Context, name string, g *group) error {
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	wait(5 * time.Second) // until the start is over
	before := g.cpu()
	wait(p.during)
	idle, memory := g.cpu()-before, g.memory()
	before = g.cpu()
	submitted, err := p.submit(ctx, client.New(fmt.Sprintf("http://127.0.0.1:%d", g.port), ""))
	if err != nil {
		return err
	}
	wait(time.Second) // for the last jobs to end
	busy := g.cpu() - before
	fmt.Printf("%-24s %9d %9.0f %17.1f %17.2f\n", name, len(g.measured()), float64(memory)/(1<<20),
		100*idle.Seconds()/p.during.Seconds(), busy.Seconds()*1000/float64(submitted))
	return ctx.Err()
}

// submit submits single jobs at a steady rate, and waits for the last one.
func (p *processes) submit(ctx context.Context, c *client.Client) (n int, err error) {
	tick := time.NewTicker(time.Second / time.Duration(p.rate))
	defer tick.Stop()
	var posts errgroup.Group
	posts.SetLimit(100)
	for end := time.Now().Add(p.during); time.Now().Before(end) && ctx.Err() == nil; n++ {
		<-tick.C
		posts.Go(func() error {
			_, err := c.Submit(ctx, noop())
			return err
		})
	}
	if err := posts.Wait(); err != nil {
		return n, err
	}
	_, err = c.Run(ctx, noop())
	return n + 1, err
}

func noop() client.JobRequest {
	return client.JobRequest{JobType: "SIMULATION", Payload: map[string]any{"steps": []any{
		map[string]any{"type": "LOG", "message": "hi"},
	}}}
}
