package kafkaevent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
)

// Pulse checks whether a broker answers, over a connection of its own that it keeps. An accepted connection proves
// little: the kernel accepts connections for a frozen process.
type Pulse struct {
	cfg Config

	mu    sync.Mutex // held by the ask under way
	turn  int        // which broker is asked first
	heart *sarama.Broker
	lines *lines // heart's connection

	closed bool
}

// NewPulse checks the configuration; nothing connects before the first Ask.
func NewPulse(cfg Config) (*Pulse, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &Pulse{cfg: cfg}, nil
}

// Answers checks once, as a Pulse does.
func Answers(ctx context.Context, cfg Config) error {
	p, err := NewPulse(cfg)
	if err != nil {
		return err
	}
	err = bounded(ctx, func() error {
		defer p.Close()
		return p.ask(ctx)
	})
	if err != nil {
		return fmt.Errorf("ask brokers: %w", err)
	}
	return nil
}

var errStillAsking = errors.New("the ask before has not ended")

// Ask returns nil when one of the brokers has answered, and an error when none has, or when ctx ends before.
func (p *Pulse) Ask(ctx context.Context) error {
	err := bounded(ctx, func() error {
		if !p.mu.TryLock() {
			return errStillAsking
		}
		defer p.mu.Unlock()
		return p.ask(ctx)
	})
	if err != nil {
		return fmt.Errorf("ask brokers: %w", err)
	}
	return nil
}

// ask begins with the broker that answered last.
func (p *Pulse) ask(ctx context.Context) error {
	if p.closed { // an Ask whose context ended may come to this after Close
		return sarama.ErrClosedClient
	}
	addrs := p.cfg.addrs()
	var failures []error
	for range addrs {
		err := p.askOne(ctx, addrs[p.turn%len(addrs)])
		if err == nil {
			return nil
		}
		p.letGo()
		p.turn++
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func (p *Pulse) askOne(ctx context.Context, addr string) error {
	if p.heart == nil {
		s, err := p.cfg.Sarama()
		if err != nil {
			return err
		}
		p.lines = newLines(p.cfg)
		p.lines.use(s)
		p.heart = sarama.NewBroker(addr)
		if err := p.heart.Open(s); err != nil { // it goes on by itself; the request waits for it
			return err
		}
	}
	defer context.AfterFunc(ctx, p.lines.cut)() // otherwise sarama waits for its own, longer timeouts
	if _, err := p.heart.ApiVersions(&sarama.ApiVersionsRequest{}); err != nil {
		return p.cfg.unreached(err)
	}
	return nil
}

func (p *Pulse) letGo() {
	if p.heart != nil {
		p.lines.cut()
		_ = p.heart.Close() // it may never have been open
		p.heart = nil
	}
}

// Close waits for an ask under way, whose context must have ended. No ask connects after it.
func (p *Pulse) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGo()
	p.closed = true
}
