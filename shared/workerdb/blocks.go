package workerdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/workerdb/internal/gen"
)

// block names a row of blocks.
// Why attempts share rows: docs/decisions/workers.md#attempts-of-a-block-of-jobs-share-a-row
type block struct {
	id      uuid.UUID
	attempt int32
}

func (k Key) block() block { return block{jobevent.InBlock(k.JobID, 0), int32(k.Attempt)} }

func (k Key) mask() int64 { return 1 << jobevent.PlaceInBlock(k.JobID) }

// compareInBlocks orders keys by their blocks, as every batch locks these, and within a block by their places.
func (k Key) compareInBlocks(other Key) int {
	a, b := k.block(), other.block()
	return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.attempt, b.attempt),
		cmp.Compare(jobevent.PlaceInBlock(k.JobID), jobevent.PlaceInBlock(other.JobID)))
}

// blocks are columns that name attempts by their blocks, with a bit for each. The values of a block are those from
// before to until, without it, in columns of the same attempts.
type blocks struct {
	ids             []uuid.UUID
	attempts        []int32
	wanted          []int64
	befores, untils []int32
}

// blocksOf sorts items in the order of their blocks, and returns these. Of items with the same attempt only the first
// is in unique.
func blocksOf[T any](items []T, keyOf func(*T) Key) (unique []T, b blocks) {
	slices.SortStableFunc(items, func(x, y T) int { return keyOf(&x).compareInBlocks(keyOf(&y)) })
	unique = make([]T, 0, len(items))
	for i := range items {
		if i == 0 || keyOf(&items[i]) != keyOf(&items[i-1]) {
			unique = append(unique, items[i])
		}
	}
	for i := range unique {
		key := keyOf(&unique[i])
		of, last := key.block(), len(b.ids)-1
		if last < 0 || b.ids[last] != of.id || b.attempts[last] != of.attempt {
			b.ids, b.attempts, b.wanted = append(b.ids, of.id), append(b.attempts, of.attempt), append(b.wanted, 0)
			b.befores, b.untils = append(b.befores, int32(i)), append(b.untils, int32(i))
			last++
		}
		b.wanted[last] |= key.mask()
		b.untils[last]++
	}
	return unique, b
}

func blocksOfKeys(keys []Key) blocks {
	_, b := blocksOf(slices.Clone(keys), func(k *Key) Key { return *k })
	return b
}

// moving is an attempt that is to have a row of its own. If its outcome has no kind, it is open.
type moving struct {
	Outcome
	timeoutMs    int
	cancelWanted bool
	waits        bool // it is moved only if it is marked for a cancel
}

// moveParams returns the columns that name open attempts, and sorts these.
func moveParams(workerID string, all []moving) gen.BlocksMoveParams {
	unique, of := blocksOf(all, func(m *moving) Key { return m.Key })
	chosen := make([]int64, len(of.ids))
	for in := range chosen {
		for _, m := range unique[of.befores[in]:of.untils[in]] {
			if !m.waits {
				chosen[in] |= m.mask()
			}
		}
	}
	return gen.BlocksMoveParams{
		WorkerID: workerID, BlockIDs: of.ids, BlockAttempts: of.attempts, Wanted: of.wanted, Chosen: chosen,
	}
}

// move gives open attempts of a worker rows of their own, and returns those that it has moved.
func (s *Store) move(ctx context.Context, workerID string, all []moving) (moved []moving, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	moved, err = s.moveAs(ctx, moveParams(workerID, all), all, func(*pgx.Batch) {})
	if err != nil {
		return nil, fmt.Errorf("give %d attempts rows: %w", len(all), err)
	}
	return moved, nil
}

// moveAs moves attempts in one transaction, after the statements that first queues.
func (s *Store) moveAs(
	ctx context.Context, p gen.BlocksMoveParams, all []moving, first func(*pgx.Batch),
) (moved []moving, err error) {
	var rows []gen.BlocksMoveRow
	var sent time.Time
	err = pgpool.TxInBatches(ctx, s.pool, func(b *pgx.Batch) {
		first(b)
		pgpool.QueueMany(b, &rows, pgx.RowToStructByPos[gen.BlocksMoveRow], gen.BlocksMove,
			p.BlockIDs, p.BlockAttempts, p.Wanted, p.Chosen, p.Takes, p.WorkerID)
		sent = time.Now()
	}, func(_ pgpool.DB, later *pgpool.Later) error {
		moved = movedOf(all, rows, sent)
		return insertAttempts(ctx, later, p.WorkerID, moved)
	})
	return moved, err
}

// movedOf returns those of some attempts that a statement of the instant sent has moved, with instants of the
// database's clock.
func movedOf(all []moving, rows []gen.BlocksMoveRow, sent time.Time) (moved []moving) {
	of := make(map[block]*gen.BlocksMoveRow, len(rows))
	for i := range rows {
		of[block{rows[i].BlockID, rows[i].Attempt}] = &rows[i]
	}
	for i := range all {
		m := all[i]
		row := of[m.block()]
		if row == nil || row.Places&m.mask() == 0 {
			continue
		}
		row.Places &^= m.mask() // of two orders of an attempt the first one counts
		m.cancelWanted = row.CancelWanted&m.mask() != 0
		if m.StartedAt = onClock(m.StartedAt, sent, row.At); m.Kind != "" {
			m.FinishedAt = onClock(cmp.Or(m.FinishedAt, sent), sent, row.At)
		}
		moved = append(moved, m)
	}
	return moved
}

// onClock returns the instant of the database's clock, which shows at, for one of this process's clock, which shows
// now.
func onClock(t, now, at time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return at.Add(-time.Duration(ago(now, t)) * time.Microsecond)
}

// insertAttempts inserts the rows of attempts that were moved.
func insertAttempts(ctx context.Context, db pgpool.DB, workerID string, moved []moving) error {
	if len(moved) == 0 {
		return nil
	}
	n := len(moved)
	p := gen.AttemptInsertManyParams{
		WorkerID: workerID, JobIDs: make([]uuid.UUID, n), Attempts: make([]int32, n), TraceIDs: make([]uuid.UUID, n),
		TimeoutMss: make([]int32, n), CancelsWanted: make([]bool, n),
		StartedAts: make([]time.Time, n), FinishedAts: make([]time.Time, n), Outcomes: make([]string, n),
		Outputs: make([]json.RawMessage, n), ErrorCodes: make([]string, n), Messages: make([]string, n),
		Retryables: make([]bool, n), RetryAfterMss: make([]int64, n), CallbackTimeoutMss: make([]int64, n),
	}
	for i := range moved {
		m := &moved[i]
		p.JobIDs[i], p.Attempts[i], p.TraceIDs[i], p.TimeoutMss[i] = m.JobID, int32(m.Attempt), m.TraceID, int32(m.timeoutMs)
		p.CancelsWanted[i], p.StartedAts[i], p.FinishedAts[i] = m.cancelWanted, m.StartedAt, m.FinishedAt
		p.Outcomes[i], p.Outputs[i], p.ErrorCodes[i], p.Messages[i] = string(m.Kind), m.Output, m.ErrorCode, m.Message
		p.Retryables[i], p.RetryAfterMss[i] = m.Retryable, m.RetryAfter.Milliseconds()
		p.CallbackTimeoutMss[i] = m.CallbackTimeout.Milliseconds()
	}
	return gen.New(db).AttemptInsertMany(ctx, p)
}

// moveListed gives open attempts in a worker's claims rows of their own, so that they can be settled one by one. It
// reports whether some may be left.
func (s *Store) moveListed(ctx context.Context, workerID string) (more bool, err error) {
	rows, err := s.q.AttemptsUnmoved(ctx, gen.AttemptsUnmovedParams{WorkerID: workerID, Most: maxReaped})
	if err != nil {
		return false, fmt.Errorf("read open attempts of worker %s: %w", workerID, pgpool.Classify(err))
	}
	all := make([]moving, len(rows))
	for i, row := range rows {
		all[i].Key, all[i].TraceID = Key{row.JobID, int(row.Attempt)}, row.TraceID
	}
	_, err = s.move(ctx, workerID, all)
	return len(rows) == maxReaped, err
}

// get returns what is known of attempts. That of an open attempt has no kind. That of one in a block has no trace.
func (s *Store) get(ctx context.Context, keys []Key) (map[Key]Outcome, error) {
	of := blocksOfKeys(keys)
	// The blocks come first: what they show as moved by then has its row.
	rows, err := s.q.BlocksGet(ctx, gen.BlocksGetParams{BlockIDs: of.ids, BlockAttempts: of.attempts})
	if err != nil {
		return nil, fmt.Errorf("read %d blocks: %w", len(of.ids), pgpool.Classify(err))
	}
	inBlocks := make(map[block]gen.Block, len(rows))
	for _, row := range rows {
		inBlocks[block{row.BlockID, row.Attempt}] = row
	}
	found := make(map[Key]Outcome, len(keys))
	for _, key := range keys {
		if row, ok := inBlocks[key.block()]; ok && row.Taken&^row.Moved&key.mask() != 0 {
			found[key] = outcomeInBlock(key, &row)
		}
	}
	jobIDs, attempts := columns(keys)
	apart, err := s.q.AttemptGetMany(ctx, gen.AttemptGetManyParams{JobIDs: jobIDs, Attempts: attempts})
	if err != nil {
		return nil, fmt.Errorf("read %d attempts: %w", len(keys), pgpool.Classify(err))
	}
	for _, row := range apart {
		found[keyOf(row)] = outcomeOf(row)
	}
	return found, nil
}

func outcomeInBlock(key Key, row *gen.Block) Outcome {
	o := Outcome{Key: key}
	for i, share := range row.Shares {
		if share&key.mask() != 0 {
			o.WorkerID = row.Workers[i]
		}
	}
	if at := slices.Index(row.Places, int16(jobevent.PlaceInBlock(key.JobID))); at >= 0 {
		o.Kind, o.StartedAt, o.FinishedAt, o.Output = Completed, row.StartedAt[at], row.FinishedAt[at], row.Outputs[at]
	}
	return o
}

// wantCancel marks open attempts of any worker.
func (s *Store) wantCancel(ctx context.Context, keys []Key) error {
	if len(keys) == 0 {
		return nil
	}
	of := blocksOfKeys(keys)
	jobIDs, attempts := columns(keys)
	// In this order: an attempt that is moved in between takes the mark along, or has a row by then.
	err := s.q.BlocksWantCancel(ctx, gen.BlocksWantCancelParams{
		BlockIDs: of.ids, BlockAttempts: of.attempts, Wanted: of.wanted,
	})
	if err == nil {
		err = s.q.AttemptWantCancelMany(ctx, gen.AttemptWantCancelManyParams{JobIDs: jobIDs, Attempts: attempts})
	}
	if err != nil {
		return fmt.Errorf("mark %d attempts for cancel: %w", len(keys), pgpool.Classify(err))
	}
	return nil
}

// Taken returns those of the attempts that a worker has claimed or settled.
func (s *Store) Taken(ctx context.Context, keys []Key) ([]Key, error) {
	found, err := s.get(ctx, keys)
	return slices.Collect(maps.Keys(found)), err
}
