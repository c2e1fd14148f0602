package schedulerdb

import (
	"context"
	"fmt"
	"math"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Control has those controls hold that are newer than what is kept, from this transaction on, and sends
// out what they set free. It says of each which version holds.
func (s *Store) Control(ctx context.Context, controls []jobevent.Control) (Say, error) {
	for _, c := range controls {
		if err := checkControl(c); err != nil {
			return Say{}, err
		}
	}
	var say Say
	err := s.txSay(ctx, &say, func(q *gen.Queries) error {
		say = Say{}
		l, err := s.lockDispatch(ctx, q)
		if err != nil {
			return err
		}
		kept, err := q.ControlsList(ctx)
		if err != nil {
			return fmt.Errorf("read controls: %w", err)
		}
		newer, applied := foldControls(kept, controls)
		say.Controls = applied
		if len(newer.Kinds) > 0 {
			if err := l.change(ctx, q, newer); err != nil {
				return err
			}
		}
		return s.dispatchLocked(ctx, q, "command", l, &say)
	})
	return say, err
}

// foldControls gives what is newer than what is kept, and the version that holds of each that was said.
func foldControls(
	kept []gen.Control, said []jobevent.Control,
) (newer gen.ControlsSaveParams, applied []jobevent.ControlApplied) {
	versions, latest := map[subject]int64{}, map[subject]jobevent.Control{}
	for _, row := range kept {
		versions[subject{jobevent.ControlKind(row.Kind), row.Name}] = row.Version
	}
	var order []subject
	for _, c := range said {
		s := subject{c.Kind, c.Name}
		if before, some := latest[s]; !some {
			order = append(order, s)
		} else if c.Version <= before.Version {
			continue
		}
		latest[s] = c
	}
	for _, s := range order {
		c := latest[s]
		if c.Version > versions[s] {
			versions[s] = c.Version
			addControl(&newer, c)
		}
		applied = append(applied, jobevent.ControlApplied{Kind: s.kind, Name: s.name, Version: versions[s]})
	}
	return newer, applied
}

func addControl(p *gen.ControlsSaveParams, c jobevent.Control) {
	running, perSecond := int32(-1), 0.0
	if c.MaxRunning != nil {
		running = int32Of(*c.MaxRunning)
	}
	if c.StartsPerSecond != nil {
		perSecond = *c.StartsPerSecond
	}
	p.Kinds = append(p.Kinds, string(c.Kind))
	p.Names = append(p.Names, c.Name)
	p.Versions = append(p.Versions, c.Version)
	p.Pauses = append(p.Pauses, c.Paused)
	p.MaxRunning = append(p.MaxRunning, running)
	p.StartsPerSecond = append(p.StartsPerSecond, perSecond)
}

// change writes controls and goes by them. What they are about is counted where the ledger did not
// have to: whoever has changed a row and not entered it yet waits for our lock, and enters it afterwards.
func (l *ledger) change(ctx context.Context, q *gen.Queries, newer gen.ControlsSaveParams) error {
	if err := q.ControlsSave(ctx, newer); err != nil {
		return fmt.Errorf("write controls: %w", err)
	}
	rows, err := q.ControlsList(ctx)
	if err != nil {
		return fmt.Errorf("read controls: %w", err)
	}
	l.Controls++
	l.changed = true
	// Not kept by the store: should this be rolled back, another set has its number.
	if err := l.goBy(ctx, q, newControlSet(l.Controls, rows)); err != nil {
		return err
	}
	l.running, err = countRunning(ctx, q, l.controls)
	return err
}

// countRunning counts what is out of the job types and owners under control.
func countRunning(ctx context.Context, q *gen.Queries, set *controlSet) (map[subject]int, error) {
	if !set.byJob {
		return nil, nil
	}
	rows, err := q.RunningByJob(ctx)
	if err != nil {
		return nil, fmt.Errorf("count attempts by job type and owner: %w", err)
	}
	running := map[subject]int{}
	for _, row := range rows {
		for _, s := range set.touching(row.JobType, row.OwnerID) {
			running[s] += int(row.Attempts)
		}
	}
	return running, nil
}

func checkControl(c jobevent.Control) error {
	ok := c.Name != "" && c.Name == jobevent.CleanText(c.Name, nameMost) && c.Version > 0
	switch c.Kind {
	case jobevent.ControlQueue:
		ok = ok && namesTopic(c.Name)
	case jobevent.ControlType, jobevent.ControlOwner:
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("take control of %q %q, version %d: %w",
			jobevent.CleanText(string(c.Kind), nameMost), jobevent.CleanText(c.Name, nameMost), c.Version, jobevent.ErrInvalid)
	}
	if n := c.MaxRunning; n != nil && *n < 0 {
		return fmt.Errorf("take a limit of %d attempts at once: %w", *n, jobevent.ErrInvalid)
	}
	if r := c.StartsPerSecond; r != nil && (math.IsNaN(*r) || *r <= 0 || math.IsInf(*r, 0)) {
		return fmt.Errorf("take a limit of %g starts a second: %w", *r, jobevent.ErrInvalid)
	}
	return nil
}
