package apidb

import (
	"context"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// A process that changes what the API shows notifies the watchers in the transaction of the change, and only while a
// client watches. A gateway with an open stream or a waiting request announces itself by NOTIFY on jobweaver_watching
// every WatchEvery. A projection that receives it notifies jobweaver_changes for watchFor.
//
//	gateway                                projection
//	NOTIFY jobweaver_watching       ─▶     notifies from now on of each batch that begins
//	                                       waits for the batches that began before, which do not notify
//	reads again what it watches     ◀─     NOTIFY jobweaver_changes: begins
//	reads these jobs                ◀─     NOTIFY jobweaver_changes: these jobs, with the commit of each batch
//
// So everything that was committed without a notification was committed before "begins", and a gateway that reads after
// "begins" sees it.
//
// Gateways, cron and bulk do the same with jobs that they accept and commands that they keep, but send only
// ChangeOthers: a gateway polls for ends less often while projections announce themselves.
const (
	channelChanges  = "jobweaver_changes"
	channelWatching = "jobweaver_watching"

	// WatchEvery is the interval at which a watcher announces itself.
	WatchEvery = 20 * time.Second
	// watchFor is how long changes are notified after the last announcement of a watcher: two of them may be lost.
	watchFor = 3 * WatchEvery

	mostTold    = 700 // jobs of a batch whose changes lists show: of more, only that there are many
	toldPerNote = 350 // a payload of NOTIFY has less than 8,000 bytes
)

// ChangeKind is what has changed.
type ChangeKind byte

// The kinds of a change, as payloads begin.
const (
	ChangeStatus   ChangeKind = 's' // also of jobs that are new, or that a command waits for
	ChangeEnded    ChangeKind = 'e' // a status that is terminal
	ChangeProgress ChangeKind = 'p'
	ChangeLog      ChangeKind = 'l'
	ChangeGone     ChangeKind = 'g' // the jobs are deleted
	ChangeMany     ChangeKind = 'm' // of more jobs than are named
	ChangeBegins   ChangeKind = 'b' // a projection tells from now on: what changed before was told to nobody
	ChangeOthers   ChangeKind = 'o' // the same of a gateway, cron or bulk
	ChangeControls ChangeKind = 'c' // what holds jobs, as a pause
	ChangeHere     ChangeKind = 'h' // a projection goes on telling
	ChangeAsks     ChangeKind = 'a' // a projection that has just come asks whether anybody watches
)

// Change is a notification: what has changed of which jobs.
type Change struct {
	Kind   ChangeKind
	JobIDs []uuid.UUID // of those kinds that name any
}

// tellings are the payloads of the notifications of changed jobs.
func tellings(kind ChangeKind, ids []uuid.UUID) (payloads []string) {
	if len(ids) > mostTold && kind != ChangeLog && kind != ChangeGone {
		return []string{string(rune(ChangeMany))}
	}
	for some := range slices.Chunk(ids, toldPerNote) {
		raw := make([]byte, 0, len(some)*len(uuid.Nil))
		for _, id := range some {
			raw = append(raw, id[:]...)
		}
		payloads = append(payloads, string(rune(kind))+base64.RawStdEncoding.EncodeToString(raw))
	}
	return payloads
}

// readTelling is the way back. What cannot be read is of a newer version: many may have changed.
func readTelling(payload string) Change {
	if payload == "" {
		return Change{Kind: ChangeMany}
	}
	raw, err := base64.RawStdEncoding.DecodeString(payload[1:])
	if err != nil || len(raw)%len(uuid.Nil) != 0 {
		return Change{Kind: ChangeMany}
	}
	change := Change{Kind: ChangeKind(payload[0])}
	for id := range slices.Chunk(raw, len(uuid.Nil)) {
		change.JobIDs = append(change.JobIDs, uuid.UUID(id))
	}
	return change
}

// StatusChanges returns the notifications of jobs whose status changed: of those that ended, and of the others.
func StatusChanges(ended, others []uuid.UUID) []string {
	if n := len(ended) + len(others); n > mostTold {
		return []string{string(rune(ChangeMany))}
	}
	return append(tellings(ChangeEnded, ended), tellings(ChangeStatus, others)...)
}

// watch knows whether a client watches. It is memory only.
type watch struct {
	mu     sync.Mutex
	until  time.Time
	silent *sync.WaitGroup // batches under way that tell nobody
}

// enter reports whether a batch that begins now notifies of its changes. The caller calls done when the batch has
// ended.
func (w *watch) enter() (tells bool, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.until) {
		return true, func() {}
	}
	if w.silent == nil {
		w.silent = &sync.WaitGroup{}
	}
	w.silent.Add(1)
	return false, w.silent.Done
}

// renew makes batches notify that begin from now on. begins is true if they did not before; then renew returns once the
// batches that do not notify have ended.
func (w *watch) renew() (begins bool) {
	w.mu.Lock()
	now := time.Now()
	begins = !now.Before(w.until)
	w.until = now.Add(watchFor)
	silent := w.silent
	if begins {
		w.silent = nil
	}
	w.mu.Unlock()
	if begins && silent != nil {
		silent.Wait()
	}
	return begins
}

// end stops batches from notifying.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{}
}

// ListenWatchers makes the store notify of changes while a client watches. It calls heard when it begins, and at each
// announcement of a watcher. It ends with ctx or with its connection. When it begins it asks the watchers to announce
// themselves, because announcements that came before are lost.
func (s *Store) ListenWatchers(ctx context.Context, heard func()) error {
	answer := func(string) error {
		heard()
		kind := ChangeHere
		if s.watch.renew() {
			kind = ChangeBegins
		}
		return s.answerWatchers(ctx, kind)
	}
	return pgpool.ListenTo(ctx, s.pool, s.asksThen(ctx, heard), map[string]func(string) error{channelWatching: answer})
}

// FollowWatchers is ListenWatchers for a store that applies no words of the scheduler: see Watched.
func (s *Store) FollowWatchers(ctx context.Context, heard func()) error {
	return pgpool.ListenTo(ctx, s.pool, s.asksThen(ctx, heard), map[string]func(string) error{
		channelWatching: func(string) error { return s.beginTelling(ctx) },
	})
}

// BeginChange begins a batch that changes jobs. If notify is true, the batch calls NotifyChange in its transaction. The
// caller calls done when the batch has ended.
func (s *Store) BeginChange() (notify bool, done func()) { return s.watch.enter() }

// Watched reports whether a client watches, here or elsewhere. What was committed before it was false is seen by those
// who come to watch.
func (s *Store) Watched() bool {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return time.Now().Before(s.watch.until)
}

// beginTelling answers a new watcher, unless batches notify already.
func (s *Store) beginTelling(ctx context.Context) error {
	if !s.watch.renew() {
		return nil
	}
	return s.answerWatchers(ctx, ChangeOthers)
}

// asksThen is what to do once a channel is listened to: which clients watch already is asked to say so.
func (s *Store) asksThen(ctx context.Context, begun func()) func() error {
	return func() error {
		err := s.q.ChangesTell(ctx, []string{string(rune(ChangeAsks))})
		begun()
		return Classify("ask who watches", err)
	}
}

func (s *Store) answerWatchers(ctx context.Context, kind ChangeKind) error {
	err := s.q.ChangesTell(ctx, []string{string(rune(kind))})
	if err != nil {
		s.watch.end() // so that the next one begins anew
	}
	return Classify("tell who watches", err)
}

// TellWatching announces that this process watches jobs: for a minute, changes are notified to ListenChanges.
func (s *Store) TellWatching(ctx context.Context) error {
	return Classify("tell that somebody watches", s.q.WatchersTell(ctx))
}

// ListenChanges calls begun once it listens, and heard with each change. It ends with ctx or with its connection.
func (s *Store) ListenChanges(ctx context.Context, begun func(), heard func(Change)) error {
	return pgpool.ListenTo(ctx, s.pool, func() error { begun(); return nil }, map[string]func(string) error{
		channelChanges: func(payload string) error {
			heard(readTelling(payload))
			return nil
		},
	})
}

// TellChanges notifies the watchers of changes that have been committed.
func (s *Store) TellChanges(ctx context.Context, kind ChangeKind, ids []uuid.UUID) error {
	return Classify("tell of changes", s.q.ChangesTell(ctx, tellings(kind, ids)))
}

// NotifyChange notifies the watchers of changed jobs, with the commit of the transaction that changes them.
func NotifyChange(ctx context.Context, q *gen.Queries, kind ChangeKind, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return q.ChangesTell(ctx, tellings(kind, ids))
}
