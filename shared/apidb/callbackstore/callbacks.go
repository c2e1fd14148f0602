package callbackstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/rowjson"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// Callback is the outcome of an attempt that an outside system reported. It is kept until a status shows that the
// attempt is over.
type Callback struct {
	JobID      uuid.UUID
	TraceID    uuid.UUID
	Attempt    int
	Kind       jobstate.Kind // completed or failed
	Output     json.RawMessage
	ErrorCode  string
	Message    string
	Retryable  bool
	ReceivedAt time.Time
}

// Taken is the result of an accepted callback.
type Taken struct {
	Callback *Callback // to be published; nil: none
	Before   bool      // a repeated callback: nothing has changed
}

// RefusedError is the reason why a callback was not accepted.
type RefusedError struct {
	Attempt int
	Status  jobstate.Status // of the job
	Why     Refusal
}

// Refusal is a reason to refuse a callback.
type Refusal int

// The reasons to refuse a callback.
const (
	Over        Refusal = iota // the attempt is over
	Expired                    // its deadline has passed
	Another                    // another callback was accepted
	UnderCancel                // a cancel of its job is under way
)

func (e *RefusedError) Error() string {
	switch e.Why {
	case Over:
		return fmt.Sprintf("attempt %d is over: the job is %s", e.Attempt, e.Status)
	case Expired:
		return fmt.Sprintf("the deadline of attempt %d has passed", e.Attempt)
	case Another:
		return fmt.Sprintf("attempt %d has had a different callback", e.Attempt)
	case UnderCancel:
		return "the job is being cancelled"
	}
	return "the callback is refused"
}

// Unwrap returns the error for the client.
func (e *RefusedError) Unwrap() error {
	if e.Why == Expired {
		return apierror.New(apierror.CallbackExpired, "%s", e)
	}
	return apierror.New(apierror.InvalidStateTransition, "%s", e)
}

// Keep stores a callback, which ends its attempt or reports its progress. signedID is the id of a signed message,
// which is accepted once; empty: the message is not signed. An error is ErrNoJob, a *RefusedError or the database's.
func (s *Store) Keep(ctx context.Context, reported apibody.Callback, signedID string) (Taken, error) {
	return s.KeepAs(ctx, reported, reported, signedID)
}

// KeepAs is Keep for a sealed callback. A repeated callback is recognised by the unsealed one.
func (s *Store) KeepAs(ctx context.Context, reported, stored apibody.Callback, signedID string) (
	taken Taken, err error,
) {
	canonical, err := apibody.CanonicalCallback(reported)
	if err != nil {
		return Taken{}, err
	}
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		k := keeper{q: q, callback: stored}
		if signedID != "" {
			k.message = hashOf([]byte(signedID), canonical)
		}
		k.hash = hashOf(nil, canonical)
		taken, err = k.keep(ctx)
		return err
	})
	return taken, apidb.Classify(fmt.Sprintf("keep callback of job %s", reported.JobID), err)
}

// hashOf hashes an id, which may be any bytes, with a text.
func hashOf(id, text []byte) []byte {
	ofID, ofText := sha256.Sum256(id), sha256.Sum256(text)
	sum := sha256.Sum256(append(ofID[:], ofText[:]...))
	return sum[:]
}

// keeper decides on one callback while its job is locked.
type keeper struct {
	q             *gen.Queries
	callback      apibody.Callback
	hash, message []byte // message: nil if it is not signed
	job           gen.CallbackLockRow
	before        gen.CallbackBeforeRow
}

func (k *keeper) keep(ctx context.Context) (taken Taken, err error) {
	if k.job, err = k.q.CallbackLock(ctx, k.callback.JobID); err != nil {
		return Taken{}, err
	}
	k.before, err = k.q.CallbackBefore(ctx, gen.CallbackBeforeParams{
		JobID: k.callback.JobID, Attempt: int32(k.callback.Attempt),
	})
	if err != nil {
		return Taken{}, err
	}
	if bytes.Equal(k.before.BodyHash, k.hash) {
		return Taken{Before: true}, nil
	}
	if k.message != nil {
		isNew, err := k.q.WebhookSeen(ctx, k.message)
		if err != nil || isNew == 0 {
			return Taken{Before: true}, err
		}
	}
	if err := k.check(); err != nil {
		return Taken{}, err
	}
	if k.callback.Status == apibody.CallbackProgress {
		return Taken{}, k.keepProgress(ctx)
	}
	return k.keepOutcome(ctx)
}

// check refuses a callback that comes too late, or for an attempt that cannot exist yet.
func (k *keeper) check() error {
	refused := &RefusedError{Attempt: k.callback.Attempt, Status: jobstate.Status(k.job.Status)}
	attempt := int(k.job.Attempt)
	var known jobevent.Status
	if k.job.Snapshot != nil {
		if err := jsonv2.Unmarshal([]byte(*k.job.Snapshot), &known, rowjson.AnyNames); err != nil {
			return fmt.Errorf("read snapshot of job %s: %w", k.callback.JobID, err)
		}
	}
	late := known.CallbackDeadlineAt != nil && !k.before.At.Before(*known.CallbackDeadlineAt)
	switch {
	case len(k.before.BodyHash) > 0:
		refused.Why = Another
	case k.before.BodyHash != nil, // empty: JobWeaver gave the attempt up
		k.job.Version > 0 && attempt >= k.callback.Attempt && timedOut(known.History, k.callback.Attempt),
		attempt == k.callback.Attempt && refused.Status == jobstate.Waiting && late:
		refused.Why = Expired
	case k.job.Version > 0 && attempt > k.callback.Attempt,
		k.job.Version > 0 && attempt == k.callback.Attempt &&
			!refused.Status.InFlight() && refused.Status != jobstate.Waiting,
		// A job that has ended has another attempt only after a retry.
		refused.Status.Terminal() && k.before.Pending != jobevent.CommandRetry:
		refused.Why = Over
	case k.job.CancelRequestedAt != nil:
		// Refused even after the cancel was answered, when the worker has been asked to cancel: if the attempt then
		// begins to wait, the job is cancelled.
		refused.Why = UnderCancel
	default:
		return nil
	}
	return refused
}

// timedOut reports whether the attempt ended because no callback came in time.
func timedOut(history []jobevent.Transition, attempt int) bool {
	for _, m := range history {
		if m.Attempt == attempt && m.ErrorCode == string(apierror.CallbackTimeout) {
			return true
		}
	}
	return false
}

func (k *keeper) keepProgress(ctx context.Context) error {
	progress, err := json.Marshal(rowjson.Progress{
		Attempt: k.callback.Attempt, Progress: k.callback.Progress, Callback: true,
	})
	if err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return k.q.CallbackProgress(ctx, gen.CallbackProgressParams{JobID: k.callback.JobID, Progress: progress})
}

func (k *keeper) keepOutcome(ctx context.Context) (Taken, error) {
	reported := k.callback
	kept := Callback{
		JobID: reported.JobID, TraceID: k.job.TraceID, Attempt: reported.Attempt,
		Kind: jobstate.KindCompleted, Output: reported.Output,
		ErrorCode: reported.ErrorCode, Message: reported.Message, Retryable: reported.Retryable,
	}
	if reported.Status == apibody.CallbackFailed {
		kept.Kind = jobstate.KindFailed
	}
	at, err := k.q.CallbackKeep(ctx, gen.CallbackKeepParams{
		JobID: kept.JobID, Attempt: int32(kept.Attempt), Outcome: string(kept.Kind), Output: kept.Output,
		ErrorCode: kept.ErrorCode, Message: kept.Message, Retryable: kept.Retryable, BodyHash: k.hash,
	})
	kept.ReceivedAt = at
	return Taken{Callback: &kept}, err
}

// Answer deletes the callbacks of attempts that are over or cannot exist, and the ids of signed messages that are too
// old to be accepted again.
func (s *Store) Answer(ctx context.Context) error {
	err := s.q.CallbacksAnswer(ctx)
	if err == nil {
		err = s.q.WebhooksForget(ctx)
	}
	return apidb.Classify("answer callbacks", err)
}

// Due returns the outcomes of waiting attempts that are past their deadline: the callback that was accepted, or that
// there was none. The scheduler asks for them with a status once the deadline has passed. The decision is made under
// the job's lock, as for callbacks, so that a callback that was answered with 200 counts, however long its event was
// delayed.
func (s *Store) Due(ctx context.Context, waiting []jobevent.Status) (due []Callback, err error) {
	var p gen.CallbacksGiveUpParams
	p.ErrorCode, p.Message = string(apierror.CallbackTimeout), "no callback came in time"
	for _, word := range waiting {
		p.JobIDs = append(p.JobIDs, word.JobID)
		p.Attempts = append(p.Attempts, int32(word.Attempt))
		p.Deadlines = append(p.Deadlines, *word.CallbackDeadlineAt)
	}
	err = s.db.Tx(ctx, func(q *gen.Queries) error {
		if err := q.CallbacksLock(ctx, p.JobIDs); err != nil {
			return err
		}
		if err := q.CallbacksGiveUp(ctx, p); err != nil {
			return err
		}
		rows, err := q.CallbacksOf(ctx, gen.CallbacksOfParams{JobIDs: p.JobIDs, Attempts: p.Attempts})
		due = callbacksOf(rows)
		return err
	})
	return due, apidb.Classify(fmt.Sprintf("decide on %d callbacks", len(waiting)), err)
}

// Unconfirmed returns callbacks of attempts that are not over: all of their first minute, later ones at the ages of
// UnconfirmedCommands. more reports that the page is full, in rows or in bytes.
func (s *Store) Unconfirmed(ctx context.Context, p apidb.Page) (_ []Callback, more bool, err error) {
	rows, err := s.q.CallbacksUnconfirmed(ctx, gen.CallbacksUnconfirmedParams{
		MaxBytes: apidb.MaxPageBytes, Since: p.Since, Until: p.Until, AfterID: p.After, MaxCallbacks: int32(p.Limit),
	})
	if err != nil {
		return nil, false, apidb.Classify("find unconfirmed callbacks", err)
	}
	size := 0
	for _, row := range rows {
		size += len(row.Output)
	}
	return callbacksOf(rows), len(rows) == p.Limit || size > apidb.MaxPageBytes, nil
}

func callbacksOf[R gen.CallbacksOfRow | gen.CallbacksUnconfirmedRow](rows []R) []Callback {
	callbacks := make([]Callback, len(rows))
	for i := range rows {
		row := gen.CallbacksOfRow(rows[i])
		callbacks[i] = Callback{
			JobID: row.JobID, TraceID: row.TraceID, Attempt: int(row.Attempt), Kind: jobstate.Kind(row.Outcome),
			Output: row.Output, ErrorCode: row.ErrorCode, Message: row.Message, Retryable: row.Retryable,
			ReceivedAt: row.ReceivedAt,
		}
	}
	return callbacks
}
