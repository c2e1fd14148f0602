package controlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/nullable"
)

// Control is a pause or limit of all jobs of a queue, a job type, an owner or a fairness key, with the version that the
// scheduler has applied. At version 0 there is none.
type Control struct {
	jobevent.Control
	Least          jobevent.Control // the administrator's part: the owner may only tighten it
	AppliedVersion int64
	UpdatedAt      time.Time
	UpdatedBy      string
}

// Applied reports whether the scheduler has applied this version.
func (c Control) Applied() bool { return c.AppliedVersion >= c.Version }

// ID returns the kind and the name, for example queue:default.
func (c Control) ID() string { return string(c.Kind) + ":" + c.Name }

// Holds reports whether it pauses or limits anything.
func (c Control) Holds() bool { return c.Paused || c.MaxRunning != nil || c.StartsPerSecond != nil }

// Stops reports whether nothing starts under it.
func (c Control) Stops() bool { return c.Paused || c.MaxRunning != nil && *c.MaxRunning == 0 }

// ErrNoControl is returned for a control that the owner must not see.
var ErrNoControl error = apierror.New(apierror.NotFound, "there is no such control")

// ErrChanged is returned for a control that is no longer the one that the client has read.
var ErrChanged error = apierror.New(apierror.PreconditionFailed,
	"the control has changed since it was read: read it again, and repeat the change")

// maySee reports whether an owner may see a control: only those of its own jobs, and of its own fairness key.
func maySee(owner apidb.Owner, kind jobevent.ControlKind, name string) bool {
	return owner.IsEveryone() ||
		(kind == jobevent.ControlOwner || kind == jobevent.ControlKey) && name == owner.ID()
}

// mayChange reports whether an owner may change a control: a fairness key is the installation's.
func mayChange(owner apidb.Owner, kind jobevent.ControlKind, name string) bool {
	return owner.IsEveryone() || kind == jobevent.ControlOwner && name == owner.ID()
}

// Control returns a control, also if it was never set.
func (s *Store) Control(
	ctx context.Context, owner apidb.Owner, kind jobevent.ControlKind, name string,
) (Control, error) {
	if !maySee(owner, kind, name) {
		return Control{}, ErrNoControl
	}
	control, err := controlByName(ctx, s.q, kind, name)
	return control, apidb.Classify(fmt.Sprintf("get control of %s %s", kind, name), err)
}

func controlByName(ctx context.Context, q *gen.Queries, kind jobevent.ControlKind, name string) (Control, error) {
	row, err := q.ControlByName(ctx, gen.ControlByNameParams{Kind: string(kind), Name: name})
	if errors.Is(err, pgx.ErrNoRows) {
		return Control{Control: jobevent.Control{Kind: kind, Name: name}}, nil
	}
	return newControl(row), err
}

// Controls returns all controls that an owner may see, by kind and name: those that hold something, and lifted ones
// until the scheduler has applied that. Those of workers are shown with the workers, those of created queues with the
// queues.
func (s *Store) Controls(ctx context.Context, owner apidb.Owner) ([]Control, error) {
	if !owner.IsEveryone() {
		var seen []Control
		for _, kind := range []jobevent.ControlKind{jobevent.ControlKey, jobevent.ControlOwner} {
			own, err := s.Control(ctx, owner, kind, owner.ID())
			if err != nil {
				return nil, err
			}
			if own.Version > 0 {
				seen = append(seen, own)
			}
		}
		return seen, nil
	}
	rows, err := s.q.ControlsAll(ctx)
	controls := slices.DeleteFunc(newControls(rows), func(c Control) bool {
		return c.Kind == jobevent.ControlWorker || c.Kind == jobevent.ControlCreated
	})
	return controls, apidb.Classify("list controls", err)
}

// maxControls bounds the controls: the scheduler and each process that lists jobs hold all of them in memory.
const maxControls = 10_000

// ErrTooManyControls is returned for a new control beyond maxControls.
var ErrTooManyControls error = apierror.New(apierror.InvalidJobRequest, "there are %d controls already", maxControls)

// ChangeControl applies change to a control and stores it as its next version. An unchanged control keeps its
// version. An owner cannot loosen what an administrator has set. If match is not nil, it changes only a control whose
// version match accepts; else it returns ErrChanged. A change that was made already is not refused: it may be the same
// request, sent again.
func (s *Store) ChangeControl(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, kind jobevent.ControlKind, name, by string,
	match func(version int64) bool, change func(*jobevent.Control),
) (control Control, err error) {
	if !mayChange(owner, kind, name) {
		return control, ErrNoControl
	}
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		if err := q.ControlLock(ctx, gen.ControlLockParams{Kind: string(kind), Name: name}); err != nil {
			return err
		}
		if control, err = controlByName(ctx, q, kind, name); err != nil {
			return err
		}
		if kind == jobevent.ControlOwner {
			entry.SetSubject(name, "control/owner/"+name)
		}
		asked, least := control.Control, control.Least
		if change(&asked); owner.IsEveryone() {
			change(&least)
		} else {
			atLeast(&asked, least)
		}
		// A worker that was silent for long may drain without a control.
		first := kind == jobevent.ControlWorker && control.Version == 0
		if !first && same(asked, control.Control) && same(least, control.Least) {
			return nil
		}
		// One that was lifted is no control, even while the scheduler has not applied that and its row is still there.
		if match != nil && !match(control.Version) && (control.Holds() || control.Weight > 1 || !match(0)) {
			return ErrChanged
		}
		if control.Version == 0 {
			if n, err := q.ControlsCount(ctx, maxControls); err != nil || n == maxControls {
				return cmp.Or(err, ErrTooManyControls)
			}
		}
		row, err := q.ControlPut(ctx, gen.ControlPutParams{
			Kind: string(kind), Name: name, UpdatedBy: by,
			Paused: asked.Paused, MaxRunning: number[int32](asked.MaxRunning), StartsPerSecond: asked.StartsPerSecond,
			Weight: storedWeight(asked.Weight), LeastPaused: least.Paused, MostRunning: number[int32](least.MaxRunning),
			MostStartsPerSecond: least.StartsPerSecond,
		})
		control = newControl(row)
		return err
	})
	s.held.Forget() // also after an error: the commit may have succeeded
	return control, apidb.Classify(fmt.Sprintf("change control of %s %s", kind, name), err)
}

// atLeast tightens asked to least where it is looser.
func atLeast(asked *jobevent.Control, least jobevent.Control) {
	asked.Paused = asked.Paused || least.Paused
	asked.MaxRunning = lower(asked.MaxRunning, least.MaxRunning)
	asked.StartsPerSecond = lower(asked.StartsPerSecond, least.StartsPerSecond)
}

// lower returns the lower of two limits; nil is no limit.
func lower[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func same(a, b jobevent.Control) bool {
	return a.Paused == b.Paused && equal(a.MaxRunning, b.MaxRunning) && equal(a.StartsPerSecond, b.StartsPerSecond) &&
		max(a.Weight, 1) == max(b.Weight, 1)
}

// storedWeight is a weight as the row has it; null: 1.
func storedWeight(weight int) *int16 {
	if weight <= 1 {
		return nil
	}
	stored := int16(weight)
	return &stored
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func number[To, From int | int32](n *From) *To {
	if n == nil {
		return nil
	}
	to := To(*n)
	return &to
}

// ControlsApplied stores the versions that the scheduler has applied. A control that holds nothing is deleted once it
// is applied.
func (s *Store) ControlsApplied(ctx context.Context, applied []jobevent.ControlApplied) error {
	latest := slices.Clone(applied)
	slices.SortFunc(latest, func(a, b jobevent.ControlApplied) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(b.Version, a.Version))
	})
	latest = slices.CompactFunc(latest, func(a, b jobevent.ControlApplied) bool {
		return a.Kind == b.Kind && a.Name == b.Name
	})
	var p gen.ControlsAppliedParams
	for _, control := range latest {
		p.Kinds = append(p.Kinds, string(control.Kind))
		p.Names = append(p.Names, control.Name)
		p.Versions = append(p.Versions, control.Version)
	}
	return apidb.Classify(fmt.Sprintf("take %d controls as applied", len(latest)), s.q.ControlsApplied(ctx, p))
}

// UnconfirmedControls returns the controls that the scheduler has not applied, at the ages of UnconfirmedJobs.
func (s *Store) UnconfirmedControls(ctx context.Context, since, until time.Time) ([]Control, error) {
	rows, err := s.q.ControlsUnconfirmed(ctx, gen.ControlsUnconfirmedParams{Since: since, Until: until})
	return newControls(rows), apidb.Classify("find unconfirmed controls", err)
}

// ForgetControls drops the cached controls, because another process has changed one.
func (s *Store) ForgetControls() { s.held.Forget() }

// controlsAge is the highest age of the cached controls.
const controlsAge = time.Second

// heldControls are all controls, by kind and name.
type heldControls map[jobevent.ControlKind]map[string]Control

// Holding returns the controls that affect the jobs of a queue, a type, an owner and a fairness key, as they were
// at most a second ago. Changes by this process show at once. The control of AnyName applies where a name has no
// control.
func (s *Store) Holding(ctx context.Context, queue, jobType, owner, key string) ([]Control, error) {
	held, err := s.held.Get(ctx, controlsAge, s.readControls)
	if err != nil {
		return nil, err
	}
	var controls []Control
	for _, subject := range []jobevent.Control{
		{Kind: jobevent.ControlQueue, Name: queue}, {Kind: jobevent.ControlType, Name: jobType},
		{Kind: jobevent.ControlOwner, Name: owner}, {Kind: jobevent.ControlKey, Name: key},
	} {
		control := held[subject.Kind][subject.Name]
		if !control.Holds() && subject.Name != "" && subject.Kind != jobevent.ControlOwner {
			control = held[subject.Kind][jobevent.AnyName]
		}
		if control.Holds() {
			controls = append(controls, control)
		}
	}
	return controls, nil
}

// OfKeys returns the control of each fairness key, as Holding finds it, with the key's own weight.
func (s *Store) OfKeys(ctx context.Context) (of func(key string) Control, err error) {
	held, err := s.held.Get(ctx, controlsAge, s.readControls)
	return func(key string) Control {
		control := held[jobevent.ControlKey][key]
		weight := max(control.Weight, 1)
		if !control.Holds() && key != "" {
			control = held[jobevent.ControlKey][jobevent.AnyName]
		}
		control.Weight = weight
		return control
	}, err
}

func (s *Store) readControls(ctx context.Context) (heldControls, error) {
	all, err := s.Controls(ctx, apidb.Everyone)
	if err != nil {
		return nil, err
	}
	held := heldControls{}
	for _, control := range all {
		if held[control.Kind] == nil {
			held[control.Kind] = map[string]Control{}
		}
		held[control.Kind][control.Name] = control
	}
	return held, nil
}

// FromRow makes a control of its row.
func FromRow(row gen.Control) Control { return newControl(row) }

func newControls(rows []gen.Control) []Control {
	controls := make([]Control, len(rows))
	for i, row := range rows {
		controls[i] = newControl(row)
	}
	return controls
}

func newControl(row gen.Control) Control {
	return Control{
		Control: jobevent.Control{
			Kind: jobevent.ControlKind(row.Kind), Name: row.Name, Version: row.Version, Paused: row.Paused,
			MaxRunning: number[int](row.MaxRunning), StartsPerSecond: row.StartsPerSecond,
			Weight: int(nullable.Value(row.Weight)), Workers: nullable.Value(row.Workers),
		},
		Least: jobevent.Control{
			Paused: row.LeastPaused, MaxRunning: number[int](row.MostRunning), StartsPerSecond: row.MostStartsPerSecond,
		},
		AppliedVersion: row.AppliedVersion, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy,
	}
}
