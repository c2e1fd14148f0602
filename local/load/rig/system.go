// Package rig starts and stops the systems that the bench measures, each in a process of its own: PostgreSQL, a
// broker, JobWeaver, more workers, River and the peers.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Queue is a queue that only separate workers serve, never the worker of the installation.
const Queue = "bench"

// PullQueue is for pull workers, in an installation that has the function pull.
const PullQueue = "pull"

// System is a running installation: all functions in one process, with the embedded broker unless another
// broker is given.
type System struct {
	*Child
	URL string
}

// SystemConfig describes an installation.
type SystemConfig struct {
	Dir       string
	Server    *Server
	Broker    *Broker // nil: embedded in the process of the functions
	Slots     int     // of its worker
	SlotQueue int
	Pull      bool          // with the function pull
	Env       []string      // further settings of the functions
	Handler   time.Duration // how long its handler of no-ops sleeps
}

// StartSystem starts an installation and waits until it accepts jobs.
func StartSystem(ctx context.Context, cfg SystemConfig) (*System, error) {
	env := append(workerEnv(cfg.Slots, cfg.SlotQueue), "DATABASE_URL="+cfg.Server.URL(), "KAFKA_BROKERS=")
	env = append(env, cfg.Env...)
	if cfg.Broker != nil {
		env = append(env, "KAFKA_BROKERS="+cfg.Broker.Address)
	} else {
		env = append(env, "STATUS_EVENTS=none") // as jobweaver serve without KAFKA_BROKERS
	}
	args := []string{"system", "--dir", cfg.Dir, "--handler", cfg.Handler.String()}
	if cfg.Pull {
		args = append(args, "--pull")
	}
	child, err := startSelf("system", cfg.Dir, env, args...)
	if err != nil {
		return nil, err
	}
	h := &System{Child: child}
	if h.URL, err = child.ready(ctx); err != nil {
		return nil, err
	}
	for _, database := range Databases() {
		if err := cfg.Server.Durable(ctx, database); err != nil {
			return nil, errors.Join(err, h.Stop())
		}
	}
	return h, nil
}

// startSelf runs this same program in another role.
func startSelf(name, dir string, env []string, args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return start(name, dir, env, self, args...)
}

func workerEnv(slots, queue int) []string {
	return []string{
		"POOL_SIZE=" + strconv.Itoa(slots), "QUEUE_SIZE=" + strconv.Itoa(queue),
		"LOG_LEVEL=warn", "LOG_FORMAT=text", "SHUTDOWN_DELAY=0s", "AUTH=off", "K_SINK=", "FUNC_TRANSPORT=kafka",
	}
}

// Broker is a broker in a process of its own.
type Broker struct {
	*Child
	Address string
}

// StartBroker starts a broker of a kind: embedded or apache. Apache Kafka is that process's child.
func StartBroker(ctx context.Context, kind, dir string) (*Broker, error) {
	child, err := startSelf("broker-"+kind, dir, nil, "broker", "--kind", kind, "--dir", dir)
	if err != nil {
		return nil, err
	}
	address, err := child.ready(ctx)
	if err != nil {
		return nil, err
	}
	return &Broker{child, address}, nil
}
