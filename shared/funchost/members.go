package funchost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// Member is one of several functions of a process.
type Member struct {
	Function

	Config    Config
	StopAfter []string // the functions of which the drain is over before that of this one begins
}

// RunTogether is Run for several functions in one process, which share a producer and the probes: those of any member
// that listens are about all of them. If one fails, all stop, and the error names it. All drains together have the
// SHUTDOWN_GRACE of the first member.
func RunTogether(ctx context.Context, members []Member) error {
	t, err := newTogether(members)
	if err != nil {
		return err
	}
	defer t.close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := map[string]chan struct{}{}
	for _, m := range members {
		ended[m.Name] = make(chan struct{})
	}
	var group errgroup.Group
	for _, m := range members {
		own, end := context.WithCancel(context.WithoutCancel(ctx))
		group.Go(func() error {
			defer end()
			select {
			case <-ctx.Done():
			case <-ended[m.Name]:
			}
			t.noteStop()
			for _, name := range m.StopAfter {
				if before := ended[name]; before != nil {
					<-before // it ends within the grace period
				}
			}
			return nil
		})
		group.Go(func() error {
			defer close(ended[m.Name])
			m.Config.beside = t
			if err := Run(own, m.Config, m.Function); err != nil {
				stop()
				return fmt.Errorf("run %s: %w", m.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// together has what the functions of a process share.
type together struct {
	producer *kafkaevent.Producer
	names    []string
	grace    time.Duration
	alone    bool // Config.Alone

	mu       sync.Mutex
	hosts    map[string]*host // those that have started
	deadline time.Time        // of all drains; zero: no stop was requested

	asking  sync.Mutex
	pulse   *kafkaevent.Pulse
	asked   time.Time
	answers error // the last answer of a broker
}

func newTogether(members []Member) (*together, error) {
	t := &together{hosts: map[string]*host{}}
	for _, m := range members {
		t.names = append(t.names, m.Name)
	}
	if len(members) == 0 {
		return nil, errors.New("host functions: there is none")
	}
	first := members[0].Config.withDefaults()
	t.grace, t.alone = first.ShutdownGrace, first.Alone
	var err error
	if t.pulse, err = kafkaevent.NewPulse(first.Kafka); err != nil {
		return nil, err
	}
	if t.producer, err = kafkaevent.NewProducer(first.Kafka); err != nil {
		t.pulse.Close()
		return nil, err
	}
	return t, nil
}

func (t *together) close() {
	t.producer.Close()
	t.pulse.Close()
}

// add notes that a function has started.
func (t *together) add(h *host) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hosts[h.f.Name] = h
}

// noteStop begins the grace period.
func (t *together) noteStop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deadline.IsZero() {
		t.deadline = time.Now().Add(t.grace)
	}
}

// left returns how long the drain of a function may take.
func (t *together) left(grace time.Duration) time.Duration {
	if t == nil {
		return grace
	}
	t.noteStop()
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.deadline)
}

// askEvery is how old an answer of a broker may be that several functions use.
const askEvery = time.Second

// askBroker checks whether a broker answers. The functions ask one after another, and mostly get the same answer.
func (t *together) askBroker(ctx context.Context) error {
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.asked.IsZero() || t.answers != nil || time.Since(t.asked) > askEvery {
		t.answers, t.asked = t.pulse.Ask(ctx), time.Now()
	}
	return t.answers
}

// host returns a function; nil: it has not started.
func (t *together) host(name string) *host {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hosts[name]
}

// stops reports whether the process is to stop.
func (t *together) stops() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.deadline.IsZero()
}

var errStarting, errStopping = errors.New("starting"), errors.New("stopping")

// readiness answers whether clients may send requests: it fails while a function that serves HTTP is not ready, or, if
// none does, any function. A process without its broker still accepts jobs, and its clients have no other one. The
// answer has the state of each function.
func (t *together) readiness(w http.ResponseWriter, _ *http.Request) {
	states, serves := map[string]error{}, map[string]error{}
	for _, name := range t.names {
		h, err := t.host(name), errStarting
		switch {
		case t.stops() && !t.alone:
			err = errStopping // also of those whose drain has not begun
		case h != nil:
			err = h.ready(time.Now())
		}
		states[name] = err
		if h != nil && h.servesHTTP() && (!t.alone || !errors.Is(err, errStopping)) { // pull stops first
			serves[name] = err
		}
	}
	if len(serves) == 0 {
		serves = states
	}
	probe.AnswerFor(w, serves, states)
}

// liveness answers whether all functions are alive.
func (t *together) liveness(w http.ResponseWriter, r *http.Request) {
	states := map[string]error{}
	for _, name := range t.names {
		states[name] = nil
		if h := t.host(name); h != nil {
			states[name] = h.noteAlive(r.Context())
		}
	}
	probe.AnswerFor(w, states, states)
}
