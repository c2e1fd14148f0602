// Package rig starts and stops what the bench measures, each in a process of its own: PostgreSQL, a
// broker, the house, more workers, River.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Queue is one that only workers of their own serve, never the house's.
const Queue = "bench"

// PullQueue is for pull workers, in a house that has the function pull.
const PullQueue = "pull"

// House is a running house: all functions in one process, and the embedded broker with them where
// no other one is given.
type House struct {
	*Child
	URL string
}

// HouseConfig says which house.
type HouseConfig struct {
	Dir       string
	Server    *Server
	Broker    *Broker // nil: embedded in the house's process
	Slots     int     // of its worker
	SlotQueue int
	Pull      bool // with the function pull
}

// StartHouse starts a house and waits until it takes jobs.
func StartHouse(ctx context.Context, cfg HouseConfig) (*House, error) {
	env := append(workerEnv(cfg.Slots, cfg.SlotQueue), "DATABASE_URL="+cfg.Server.URL(), "KAFKA_BROKERS=")
	if cfg.Broker != nil {
		env = append(env, "KAFKA_BROKERS="+cfg.Broker.Address)
	}
	args := []string{"house", "--dir", cfg.Dir}
	if cfg.Pull {
		args = append(args, "--pull")
	}
	child, err := startSelf("house", cfg.Dir, env, args...)
	if err != nil {
		return nil, err
	}
	h := &House{Child: child}
	if h.URL, err = child.ready(ctx); err != nil {
		return nil, err
	}
	for _, database := range HouseDatabases() {
		if err := cfg.Server.Durable(ctx, database); err != nil {
			return nil, errors.Join(err, h.Stop())
		}
	}
	return h, nil
}

// startSelf runs this very program in another role.
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
