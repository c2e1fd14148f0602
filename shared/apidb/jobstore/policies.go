package jobstore

import (
	"context"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// The policies by which a request gets an existing job.
const (
	ByUnique    = "unique"
	BySingleton = "singleton"
	ByDebounce  = "debounce" // the request has changed the job
)

// decision has the data by which submit policies decide about the jobs of a transaction.
// Why no row keeps a key: docs/decisions/scheduling.md#submit-policies-look-at-the-jobs-of-their-key
type decision struct {
	lines   map[keyed]*line
	holders map[int]*Accepted    // the existing job, by the ordinal of a request that is not unique
	first   map[keyed]int        // by unique key: the ordinal of the job of this transaction that has taken the key
	starts  map[keyed]*throttled // of throttle keys
	held    map[keyed]*held      // of debounce keys
	copies  map[int]int          // by the ordinal of a request: the ordinal of the job of this transaction that answers it
}

// throttled has the latest reserved start of a throttle key (long ago if there is none), and the present instant.
type throttled struct{ at, now time.Time }

// decide applies the submit policies and gives jobs their places, in the order of the request. It returns the ordinals
// of the requests that become jobs, and of those that repeat them.
func (t *dependents) decide(ctx context.Context, fresh, repeated []int) (placed, left []int, err error) {
	keys := map[keyed][]int{}
	for _, i := range slices.Concat(fresh, repeated) {
		for _, key := range keysOf(&t.jobs[i].Request) {
			keys[key] = append(keys[key], i)
		}
	}
	if len(keys) == 0 {
		return fresh, repeated, nil
	}
	var locks []int64
	for key := range keys {
		locks = append(locks, key.lock())
	}
	slices.Sort(locks)
	if err = t.q.OrdersLock(ctx, slices.Compact(locks)); err != nil {
		return nil, nil, err
	}
	// Statements of their own, so that they see what was committed while this transaction waited for the locks.
	d := decision{
		lines: map[keyed]*line{}, holders: map[int]*Accepted{}, first: map[keyed]int{}, starts: map[keyed]*throttled{},
		copies: map[int]int{}, held: map[keyed]*held{},
	}
	if err := t.readLines(ctx, keys, &d); err != nil {
		return nil, nil, err
	}
	if err := t.readHolders(ctx, keys, &d); err != nil {
		return nil, nil, err
	}
	if err := t.readStarts(ctx, keys, &d); err != nil {
		return nil, nil, err
	}
	// No policy applies to a repeated request, whose first one may have been accepted while this transaction waited.
	known := names{}
	if slices.ContainsFunc(fresh, func(i int) bool { return t.jobs[i].Request.FindsJobs() }) {
		open, err := t.lookUp(ctx, slices.Clone(fresh))
		if err != nil {
			return nil, nil, err
		}
		for _, i := range fresh {
			if !slices.Contains(open, i) {
				known.add(&t.jobs[i])
			}
		}
		fresh = open
	}
	if t.debounce != nil {
		if err := t.debounce.read(t, ctx, keys, &d); err != nil {
			return nil, nil, err
		}
	}
	t.copies, t.held = d.copies, d.held
	placed, left = t.placeAll(slices.Sorted(slices.Values(slices.Concat(fresh, repeated))), known, &d)
	return placed, left, nil
}

// placeAll gives jobs their places. A request whose policy finds another job has no job of its own, so the next request
// of its key or event repeats nothing, and may become one. A request that has changed a held job is remembered, for
// other requests with a debounce key.
func (t *dependents) placeAll(open []int, known names, d *decision) (placed, left []int) {
	changed := names{}
	for _, i := range open {
		job := &t.jobs[i]
		switch {
		case known.has(job) || job.Held() && changed.has(job):
			left = append(left, i)
		case t.place(i, d):
			known.add(job)
			placed = append(placed, i)
		case t.accepted[i].DecidedBy == ByDebounce:
			changed.add(job)
		}
	}
	return placed, left
}

// place gives a job its place and its start, if the request becomes a job.
func (t *dependents) place(i int, d *decision) bool {
	req, a := &t.jobs[i].Request, &t.accepted[i]
	debounced := keyedDebounce(req)
	if h := d.held[debounced]; h != nil {
		t.merge(i, h)
		return false
	}
	unique := keyed{uniqueKeys, req.OwnerID, ""}
	if req.Unique != nil {
		unique.key = req.Unique.Key
		if first, taken := d.first[unique]; taken {
			d.copies[i], a.DecidedBy = first, ByUnique
			return false
		}
		if holder := d.holders[i]; holder != nil {
			*a = *holder
			return false
		}
	}
	l := d.lines[keyed{orderKeys, req.OwnerID, req.LineKey()}]
	if req.Drops() && l.at >= 0 {
		d.copies[i], a.DecidedBy = l.at, BySingleton
		return false
	}
	if req.Drops() && l.tail != nil {
		*a = *l.tail
		return false
	}
	if req.Throttle != nil && !t.reserveStart(i, d.starts[keyed{throttleKeys, req.OwnerID, req.Throttle.Key}]) {
		return false
	}
	if req.Unique != nil {
		d.first[unique] = i
	}
	if l != nil {
		t.lineUp(i, l)
	}
	if req.Debounce != nil {
		d.held[debounced] = &held{at: i, by: i, lineKey: req.LineKey()}
	}
	return true
}

// reserveStart gives a job the next start of its throttle key, or refuses it.
func (t *dependents) reserveStart(i int, s *throttled) bool {
	at := s.at.Add(t.jobs[i].Request.Throttle.Per())
	if !at.After(s.now) {
		s.at = s.now
		return true
	}
	if at.Sub(s.now) > jobspec.MaxAhead {
		t.accepted[i].Late = tooManyThrottled
		return false
	}
	s.at, t.accepted[i].RunAt = at, &at
	return true
}

var tooManyThrottled error = apierror.Invalid("job request", "throttle", "would start more than ten years ahead")

// copyAccepted answers the requests that repeat another request of the transaction with that request's job.
func (t *dependents) copyAccepted() {
	for i, of := range t.copies {
		by := t.accepted[i].DecidedBy
		t.accepted[i] = t.accepted[of]
		t.accepted[i].DecidedBy = by
	}
}

func (t *dependents) readHolders(ctx context.Context, keys map[keyed][]int, d *decision) error {
	var p gen.UniqueHoldersParams
	for key, jobs := range keys {
		if key.kind != uniqueKeys {
			continue
		}
		for _, i := range jobs {
			unique := t.jobs[i].Request.Unique
			p.Ordinals = append(p.Ordinals, int32(i))
			p.OwnerIDs, p.Keys = append(p.OwnerIDs, key.owner), append(p.Keys, key.key)
			p.ForsMs = append(p.ForsMs, time.Duration(unique.For).Milliseconds())
			p.Whiles = append(p.Whiles, unique.While)
		}
	}
	if len(p.Keys) == 0 {
		return nil
	}
	rows, err := t.q.UniqueHolders(ctx, p)
	if err != nil {
		return err
	}
	for _, row := range rows {
		d.holders[int(row.Ordinal)] = &Accepted{
			JobID: row.JobID, TraceID: row.TraceID, RunAt: row.RunAt, CreatedAt: row.CreatedAt,
			DecidedBy: ByUnique, Found: jobstate.Status(row.Status),
		}
	}
	return t.awaitReplicas(ctx, len(rows))
}

func (t *dependents) readStarts(ctx context.Context, keys map[keyed][]int, d *decision) error {
	some := keysOfKind(keys, throttleKeys)
	if len(some) == 0 {
		return nil
	}
	var p gen.ThrottleStartsParams
	for place, key := range some {
		p.Places = append(p.Places, int32(place))
		p.OwnerIDs, p.Keys = append(p.OwnerIDs, key.owner), append(p.Keys, key.key)
	}
	rows, err := t.q.ThrottleStarts(ctx, p)
	for _, row := range rows {
		d.starts[some[row.Place]] = &throttled{at: row.DueAt, now: row.At}
	}
	return err
}

// awaitReplicas makes the transaction wait for the replicas, because an answer with an existing job promises as much as
// the first answer.
// Why: docs/decisions/databases.md#every-commit-waits-for-the-disk-and-for-the-replicas
func (t *dependents) awaitReplicas(ctx context.Context, known int) error {
	if known == 0 {
		return nil
	}
	return t.q.AwaitReplicas(ctx)
}
