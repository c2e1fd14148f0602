package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"
)

const (
	asynqType  = "noop"
	asynqQueue = "default"
	// asynqCheck is how long the server waits when its queues are empty: 1 s by default, and River's poll here.
	asynqCheck = 20 * time.Millisecond
	// asynqEnqueues is how many tasks of a request are enqueued at once. Asynq has no call for many tasks, but the
	// tasks that Redis reads together share a sync of its log.
	asynqEnqueues = 64
)

type asynqPeer struct {
	redis     *child
	client    *asynq.Client
	server    *asynq.Server
	inspector *asynq.Inspector
}

func startAsynq(dir string, slots int, ran *handlers) (*asynqPeer, error) {
	server, socket, err := startRedis(dir)
	if err != nil {
		return nil, err
	}
	redis := asynq.RedisClientOpt{Network: "unix", Addr: socket, PoolSize: slots + asynqEnqueues}
	p := &asynqPeer{redis: server, client: asynq.NewClient(redis), inspector: asynq.NewInspector(redis)}
	p.server = asynq.NewServer(redis, asynq.Config{
		Concurrency: slots, TaskCheckInterval: asynqCheck, LogLevel: asynq.WarnLevel,
	})
	err = p.server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		ran.began(task.Payload())
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("start Asynq: %w", err)
	}
	return p, nil
}

func (p *asynqPeer) store(ctx context.Context, payloads [][]byte) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(asynqEnqueues)
	for _, payload := range payloads {
		all.Go(func() error {
			_, err := p.client.EnqueueContext(ctx, asynq.NewTask(asynqType, payload))
			return err
		})
	}
	return all.Wait()
}

func (p *asynqPeer) load(context.Context, load) error {
	return errors.New("Asynq takes its jobs by POST /jobs") //nolint:staticcheck // a name
}

func (p *asynqPeer) open() (bool, error) {
	info, err := p.inspector.GetQueueInfo(asynqQueue)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the queue: %w", err)
	}
	return info.Pending+info.Active+info.Retry+info.Archived > 0, nil
}

func (p *asynqPeer) stop() {
	p.server.Shutdown()
	_ = errors.Join(p.client.Close(), p.inspector.Close())
	p.redis.stop()
}
