package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// clustered lists the functions of a Cluster: those that plain jobs pass, and those that watch over the jobs. The
// worker is a process of the bench, which has the bench's job types.
var clustered = []string{"gateway", "ingest", "outcome", "projection", "dispatch", "watchdog", "command"}

// Cluster is an installation with a process for each function, as on Kubernetes.
type Cluster struct {
	URL       string
	functions []*Child
	ingress   *Child // nil: functions use Kafka
}

// ClusterConfig describes a cluster.
type ClusterConfig struct {
	Dir, Programs    string // Programs is the folder that BuildFunctions has filled
	Server           *Server
	Broker           *Broker
	HTTP             bool // events between functions go over HTTP, through a broker like Knative's
	JobType          string
	Slots, SlotQueue int
}

// BuildFunctions builds the functions' own programs into dir.
func BuildFunctions(ctx context.Context, dir string) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	for _, name := range clustered {
		build := exec.CommandContext(ctx,
			"go", "build", "-C", root, "-o", filepath.Join(dir, name), "./functions/"+name+"/cmd")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// StartCluster starts a cluster with empty databases and topics, and waits until each function is ready.
func StartCluster(ctx context.Context, cfg ClusterConfig) (_ *Cluster, err error) {
	c := &Cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	urls, err := migrations.EnsureDatabases(ctx, cfg.Server.URL())
	if err != nil {
		return nil, err
	}
	for set, url := range map[*migrations.Set]string{
		&migrations.API: urls.API, &migrations.Scheduler: urls.Scheduler, &migrations.Worker: urls.Worker,
	} {
		if err := errors.Join(migrations.Up(ctx, url, *set, nil), cfg.Server.Durable(ctx, set.Database())); err != nil {
			return nil, err
		}
	}
	kafka := kafkaevent.Config{Brokers: []string{cfg.Broker.Address}, ReplicationFactor: 1}
	if err := kafkaevent.CreateTopics(ctx, kafka, jobevent.Topics(nil)); err != nil {
		return nil, err
	}
	at := map[string]string{}
	for _, name := range clustered {
		port, err := freeport.Pick()
		if err != nil {
			return nil, err
		}
		at[name] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	c.URL = "http://" + at["gateway"]
	sink := ""
	if cfg.HTTP {
		if sink, err = c.startIngress(ctx, cfg, at); err != nil {
			return nil, err
		}
	}
	return c, c.startFunctions(ctx, cfg, urls, at, sink)
}

func (c *Cluster) startIngress(ctx context.Context, cfg ClusterConfig, at map[string]string) (sink string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	args := []string{"ingress", "--manifests", filepath.Join(root, "knative", "base"), "--kafka", cfg.Broker.Address}
	for name, address := range at {
		args = append(args, "--function", name+"=http://"+address)
	}
	if c.ingress, err = startSelf("ingress", cfg.Dir, nil, args...); err != nil {
		return "", err
	}
	return c.ingress.ready(ctx)
}

func (c *Cluster) startFunctions(
	ctx context.Context, cfg ClusterConfig, urls migrations.URLs, at map[string]string, sink string,
) error {
	common := append(workerEnv(cfg.Slots, cfg.SlotQueue),
		"KAFKA_BROKERS="+cfg.Broker.Address, "QUEUES="+jobevent.DefaultQueue, "HOST=127.0.0.1",
		"JOB_TYPES="+cfg.JobType, "K_SINK="+sink)
	for _, name := range clustered {
		_, port, _ := strings.Cut(at[name], ":")
		env := append(slices.Clone(common), "DATABASE_URL="+databaseOf(name, urls), "PORT="+port)
		if sink != "" && name != "gateway" {
			env = append(env, "FUNC_TRANSPORT=http")
		}
		child, err := start(name, cfg.Dir, env, filepath.Join(cfg.Programs, name))
		if err != nil {
			return err
		}
		c.functions = append(c.functions, child)
	}
	worker, err := StartWorker(WorkerConfig{
		Dir: cfg.Dir, Name: "worker", Server: cfg.Server, Broker: cfg.Broker, Slots: cfg.Slots, SlotQueue: cfg.SlotQueue,
		Queue: jobevent.DefaultQueue, Sink: sink,
	})
	if err != nil {
		return err
	}
	c.functions = append(c.functions, worker.Child)
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for _, name := range clustered {
		if err := awaitReady(ctx, "http://"+at[name]+"/health/readiness"); err != nil {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
	}
	return nil
}

func databaseOf(function string, urls migrations.URLs) string {
	if slices.Contains(migrations.API.Functions, function) {
		return urls.API
	}
	return urls.Scheduler
}

func awaitReady(ctx context.Context, url string) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Pids returns the process ids, by kind of process.
func (c *Cluster) Pids() map[string][]int {
	pids := map[string][]int{}
	for _, child := range c.functions {
		pids["functions"] = append(pids["functions"], child.Pid())
	}
	if c.ingress != nil {
		pids["ingress"] = []int{c.ingress.Pid()}
	}
	return pids
}

// Stop ends the functions, and then the broker that delivers their events. It fails if an event could not be delivered.
func (c *Cluster) Stop() error {
	var errs []error
	for _, child := range slices.Backward(c.functions) { // the worker first: it publishes heartbeats
		errs = append(errs, child.Stop())
	}
	if c.ingress != nil {
		errs = append(errs, c.ingress.Stop())
	}
	return errors.Join(errs...)
}
