// Package probe decides whether a function is ready and alive. It checks the function's dependencies, times the calls
// that are under way, and has the client of the readiness probe.
package probe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// checkEvery is the time between the answer of a dependency and the next check, if the grace is at least five times
	// as long.
	checkEvery = 2 * time.Second
	// checkAgain is the time after a check without an answer: the return of a dependency should be noticed at once.
	checkAgain = 250 * time.Millisecond
	// ownCheckAgain is the same for dependencies that this process checks without another system.
	ownCheckAgain = 50 * time.Millisecond
	// checkPatience is how long a check may take, if the grace is at least twice as long. A busy connection pool is not a
	// reason to take the function away from its clients.
	checkPatience = 5 * time.Second
)

// Dependency is a system or a condition without which the function cannot work. It is available from its first answer
// on, and unavailable when its last good answer is older than the grace: a broker that moves its leaders, or a database
// that fails over, must not fail a probe.
type Dependency struct {
	Reason   string                 // the probe's answer while it is unavailable
	Why      func(err error) string // a better answer after an error of Check; may be nil, or return ""
	Certain  func(err error) bool   // whether an error of Check will not pass within the grace; may be nil
	External bool                   // a restart of this process cannot repair it
	Check    func(ctx context.Context) error
	Trouble  telemetry.Trouble // logs the checks of an external one that fail

	mu          sync.Mutex
	began       time.Time // the start of the last check that succeeded; zero: none has
	failure     error     // of the last check
	lastFailure time.Time // the end of the last check that failed
}

func (d *Dependency) note(began time.Time, err error) (available bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	if err == nil {
		d.began = began
		return true
	}
	d.lastFailure = time.Now()
	return false
}

// ready returns an error if the dependency never answered, or has been unavailable for longer than the grace.
func (d *Dependency) ready(grace time.Duration, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	certain := d.Certain != nil && d.failure != nil && d.Certain(d.failure)
	if !d.began.IsZero() && (d.failure == nil || now.Sub(d.began) <= grace && !certain) {
		return nil
	}
	if d.Why != nil && d.failure != nil {
		if why := d.Why(d.failure); why != "" {
			return errors.New(why)
		}
	}
	return errors.New(d.Reason)
}

// lastUnavailable returns when the dependency was last unavailable, as far as is known; now if it is unavailable.
func (d *Dependency) lastUnavailable(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() || d.failure != nil {
		return now
	}
	return d.lastFailure
}

// Monitor checks dependencies in the background, so that a probe is answered at once even if a dependency hangs.
type Monitor struct {
	grace        time.Duration
	dependencies []*Dependency
}

// NewMonitor returns a monitor without dependencies. The grace is how long a dependency may be unavailable.
func NewMonitor(grace time.Duration) *Monitor { return &Monitor{grace: grace} }

// Add adds a dependency. It must be called before Run. A probe names the first unavailable dependency, in the order of
// the calls.
func (m *Monitor) Add(d *Dependency) { m.dependencies = append(m.dependencies, d) }

// Run checks until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	var checks sync.WaitGroup
	for _, d := range m.dependencies {
		checks.Go(func() { m.watch(ctx, d) })
	}
	checks.Wait()
}

func (m *Monitor) watch(ctx context.Context, d *Dependency) {
	for {
		began := time.Now()
		err := m.check(ctx, d)
		if ctx.Err() != nil {
			return
		}
		if d.External {
			d.Trouble.Note(ctx, err)
		}
		wait := checkEvery
		switch available := d.note(began, err); {
		case available:
		case d.External:
			wait = checkAgain
		default:
			wait = ownCheckAgain
		}
		if !retry.Pause(ctx, min(wait, m.grace/5)) {
			return
		}
	}
}

func (m *Monitor) check(ctx context.Context, d *Dependency) error {
	ctx, cancel := context.WithTimeout(ctx, min(checkPatience, m.grace/2))
	defer cancel()
	return d.Check(ctx)
}

// Ready returns an error with the reason of the first dependency that is unavailable.
func (m *Monitor) Ready(now time.Time) error {
	for _, d := range m.dependencies {
		if err := d.ready(m.grace, now); err != nil {
			return err
		}
	}
	return nil
}

// LastUnavailable returns when one of the external dependencies was last unavailable.
func (m *Monitor) LastUnavailable(now time.Time) (at time.Time) {
	for _, d := range m.dependencies {
		if d.External {
			if unavailable := d.lastUnavailable(now); unavailable.After(at) {
				at = unavailable
			}
		}
	}
	return at
}
