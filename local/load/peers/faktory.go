package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	faktory "github.com/contribsys/faktory/client"
	worker "github.com/contribsys/faktory_worker_go"
	"golang.org/x/sync/errgroup"
)

const (
	faktoryType  = "noop"
	faktoryQueue = "default"
)

// plain is the payload of a job that has no number.
const plain = `{"num":0}`

type faktoryPeer struct {
	server  *child
	clients *faktory.Pool
	ctx     context.Context
	end     context.CancelFunc
	ended   chan struct{}
}

func startFaktory(program, dir string, slots int, ran *handlers) (_ *faktoryPeer, err error) {
	p := &faktoryPeer{ended: make(chan struct{})}
	var address string
	if p.server, address, err = startFaktoryServer(program, dir); err != nil {
		return nil, err
	}
	// Both libraries read the address from the environment only.
	if err := os.Setenv("FAKTORY_URL", "tcp://"+address); err != nil {
		return nil, err
	}
	if p.clients, err = faktory.NewPool(slots); err != nil {
		return nil, fmt.Errorf("connect to Faktory: %w", err)
	}
	manager := worker.NewManager()
	manager.Concurrency = slots
	manager.ProcessStrictPriorityQueues(faktoryQueue)
	manager.Register(faktoryType, func(_ context.Context, args ...any) error {
		payload, err := json.Marshal(args[0])
		ran.began(payload)
		return err
	})
	p.ctx, p.end = context.WithCancel(context.Background())
	go func() {
		defer close(p.ended)
		_ = manager.RunWithContext(p.ctx) // it returns only the context's error
	}()
	return p, nil
}

// store pushes all payloads with one command.
func (p *faktoryPeer) store(_ context.Context, payloads [][]byte) error {
	jobs := make([]*faktory.Job, len(payloads))
	for i, payload := range payloads {
		jobs[i] = faktory.NewJob(faktoryType, json.RawMessage(payload))
	}
	return p.clients.With(func(c *faktory.Client) error {
		refused, err := c.PushBulk(jobs)
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("%d jobs were refused", len(refused))
		}
		return err
	})
}

func (p *faktoryPeer) load(ctx context.Context, l load) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(l.Clients)
	for left := l.Jobs; left > 0; left -= l.Batch {
		payloads := make([][]byte, min(left, l.Batch))
		for i := range payloads {
			payloads[i] = []byte(plain)
		}
		all.Go(func() error { return p.store(ctx, payloads) })
	}
	return all.Wait()
}

func (p *faktoryPeer) open() (open bool, err error) {
	err = p.clients.With(func(c *faktory.Client) error {
		state, err := c.CurrentState()
		if err != nil {
			return err
		}
		open = state.Data.TotalEnqueued > 0
		for _, jobs := range state.Data.Sets { // scheduled, retries, dead and working
			open = open || jobs > 0
		}
		return nil
	})
	return open, err
}

func (p *faktoryPeer) stop() {
	p.end()
	<-p.ended
	p.server.stop()
}
