package schedulerdb

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/emit"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// Control stores the controls that are newer than the stored ones, and dispatches the jobs that may go out now. They
// are in force from this transaction on. It returns the version that is in force for each.
func (s *Store) Control(ctx context.Context, controls []jobevent.Control) (emit.Effects, error) {
	for _, c := range controls {
		if err := checkControl(c); err != nil {
			return emit.Effects{}, err
		}
	}
	var r result
	err := s.step(ctx, &r, nil, func(t step) error {
		r = result{}
		l, err := s.lockLedger(ctx, t.Queries)
		if err != nil {
			return err
		}
		kept, err := readControls(ctx, t.Queries)
		if err != nil {
			return err
		}
		newer, applied := dispatch.FoldControls(kept, controls)
		r.Controls = applied
		if len(newer) > 0 {
			if err := changeControls(ctx, t.Queries, l, newer); err != nil {
				return err
			}
		}
		return s.dispatchLocked(ctx, t, "command", l, &r)
	})
	return r.Effects, err
}

// changeControls writes controls and puts them into force. It counts the attempts of their job types and owners, which
// the ledger has not counted until now. A transaction that has changed a row without having entered the change yet
// waits for our lock, and enters it afterwards.
func changeControls(ctx context.Context, q *gen.Queries, l *dispatch.Ledger, newer []jobevent.Control) error {
	if err := q.DrainsForget(ctx); err != nil {
		return fmt.Errorf("forget drains of workers that are gone: %w", err)
	}
	if err := q.ControlsSave(ctx, controlsParams(newer)); err != nil {
		return fmt.Errorf("write controls: %w", err)
	}
	kept, err := readControls(ctx, q)
	if err != nil {
		return err
	}
	// The store does not keep this set: if the transaction is rolled back, another set gets its revision.
	set := l.ChangeControls(kept)
	l.UseControls(set)
	running, err := countRunning(ctx, q, set)
	l.SetRunning(running)
	return err
}

func controlsParams(controls []jobevent.Control) gen.ControlsSaveParams {
	var p gen.ControlsSaveParams
	for _, c := range controls {
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
		p.Weights = append(p.Weights, int16Of(c.Weight))
		p.Workers = append(p.Workers, c.Workers)
	}
	return p
}

// countRunning counts the attempts that are out for each job type and owner under a control.
func countRunning(ctx context.Context, q *gen.Queries, set *dispatch.Controls) (map[dispatch.Subject]int, error) {
	if !set.CountsRunning() {
		return nil, nil
	}
	rows, err := q.RunningByJob(ctx)
	if err != nil {
		return nil, fmt.Errorf("count attempts by job type and owner: %w", err)
	}
	running := map[dispatch.Subject]int{}
	for _, row := range rows {
		set.CountRunning(running, dispatch.Class{
			JobType: row.JobType, OwnerID: row.OwnerID, FairnessKey: row.FairnessKey,
		}, int(row.Attempts))
	}
	return running, nil
}

func checkControl(c jobevent.Control) error {
	ok := c.Name != "" && (c.Workers == "" || c.Kind == jobevent.ControlCreated) &&
		c.Name == jobevent.CleanText(c.Name, nameMost) && c.Version > 0
	switch c.Kind {
	case jobevent.ControlQueue:
		ok = ok && c.Weight == 0 && (namesTopic(c.Name) || c.Name == jobevent.AnyName)
	case jobevent.ControlType, jobevent.ControlOwner:
		ok = ok && c.Weight == 0
	case jobevent.ControlWorker:
		ok = ok && c.Weight == 0 && c.MaxRunning == nil && c.StartsPerSecond == nil
	case jobevent.ControlCreated:
		ok = ok && namesTopic(c.Name) && !c.Paused && c.Weight == 0 && c.MaxRunning == nil && c.StartsPerSecond == nil &&
			slices.Contains([]string{"", jobevent.WorkersRunjob, jobevent.WorkersPull}, c.Workers)
	case jobevent.ControlKey:
		// If a control paused every key, dispatching would look at all of them in vain.
		holdsAll := c.Paused || c.MaxRunning != nil && *c.MaxRunning == 0
		ok = ok && c.Weight >= 0 && c.Weight <= 100 && !(c.Name == jobevent.AnyName && holdsAll)
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("accept control of %q %q, version %d: %w",
			jobevent.CleanText(string(c.Kind), nameMost), jobevent.CleanText(c.Name, nameMost), c.Version, jobevent.ErrInvalid)
	}
	if n := c.MaxRunning; n != nil && *n < 0 {
		return fmt.Errorf("accept a limit of %d attempts at once: %w", *n, jobevent.ErrInvalid)
	}
	if r := c.StartsPerSecond; r != nil && (math.IsNaN(*r) || *r <= 0 || math.IsInf(*r, 0)) {
		return fmt.Errorf("accept a limit of %g starts a second: %w", *r, jobevent.ErrInvalid)
	}
	return nil
}
