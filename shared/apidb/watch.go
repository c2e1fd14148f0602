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

	mostNamed     = 700 // at most this many changed jobs of a batch are named; beyond that only ChangeMany is sent
	idsPerPayload = 350 // a payload of NOTIFY is shorter than 8,000 bytes
)

// ChangeKind is the kind of a change.
type ChangeKind byte

// The kinds of a change, the first byte of a payload.
const (
	ChangeStatus   ChangeKind = 's' // a status, a new job or a new command
	ChangeEnded    ChangeKind = 'e' // a terminal status
	ChangeProgress ChangeKind = 'p'
	ChangeLog      ChangeKind = 'l'
	ChangeGone     ChangeKind = 'g' // the jobs are deleted
	ChangeMany     ChangeKind = 'm' // too many jobs to name
	ChangeBegins   ChangeKind = 'b' // a projection notifies from now on, and did not before
	ChangeOthers   ChangeKind = 'o' // the same, from a gateway, cron or bulk
	ChangeControls ChangeKind = 'c' // the controls of jobs, such as a pause
	ChangeHere     ChangeKind = 'h' // a projection still notifies
	ChangeAsks     ChangeKind = 'a' // a new projection asks whether a client watches
)

// Change is a notification: the kind of the change, and which jobs have changed.
type Change struct {
	Kind   ChangeKind
	JobIDs []uuid.UUID // empty for kinds without jobs
}

// changePayloads returns the payloads of the notifications of changed jobs.
func changePayloads(kind ChangeKind, ids []uuid.UUID) (payloads []string) {
	if len(ids) > mostNamed && kind != ChangeLog && kind != ChangeGone {
		return []string{string(rune(ChangeMany))}
	}
	for some := range slices.Chunk(ids, idsPerPayload) {
		raw := make([]byte, 0, len(some)*len(uuid.Nil))
		for _, id := range some {
			raw = append(raw, id[:]...)
		}
		payloads = append(payloads, string(rune(kind))+base64.RawStdEncoding.EncodeToString(raw))
	}
	return payloads
}

// readChange reads a payload. An unreadable one is from a newer version: many jobs may have changed.
func readChange(payload string) Change {
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

// StatusChanges returns the notifications of jobs whose status changed: ended jobs, and others.
func StatusChanges(ended, others []uuid.UUID) []string {
	if n := len(ended) + len(others); n > mostNamed {
		return []string{string(rune(ChangeMany))}
	}
	return append(changePayloads(ChangeEnded, ended), changePayloads(ChangeStatus, others)...)
}

// watch knows whether a client watches. It is in memory only.
type watch struct {
	mu     sync.Mutex
	until  time.Time
	silent *sync.WaitGroup // batches under way that do not notify
}

// enter reports whether a batch that begins now notifies of its changes. The caller calls done when the batch has
// ended.
func (w *watch) enter() (notify bool, done func()) {
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

// renew makes batches that begin from now on notify. begins is true if they did not before; then renew returns once
// the batches that do not notify have ended.
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

// ListenWatchers makes the store notify of changes while a client watches. It calls announced when it begins, and at
// each announcement of a watcher. It ends with ctx or with its connection. When it begins it asks the watchers to
// announce themselves, because earlier announcements are lost.
func (s *Store) ListenWatchers(ctx context.Context, announced func()) error {
	answer := func(string) error {
		announced()
		kind := ChangeHere
		if s.watch.renew() {
			kind = ChangeBegins
		}
		return s.answerWatchers(ctx, kind)
	}
	return pgpool.ListenTo(ctx, s.pool, s.askThen(ctx, announced), map[string]func(string) error{channelWatching: answer})
}

// FollowWatchers is ListenWatchers for a store that applies no statuses of the scheduler: see Watched.
func (s *Store) FollowWatchers(ctx context.Context, announced func()) error {
	return pgpool.ListenTo(ctx, s.pool, s.askThen(ctx, announced), map[string]func(string) error{
		channelWatching: func(string) error { return s.beginNotifying(ctx) },
	})
}

// BeginChange begins a batch that changes jobs. If notify is true, the batch calls NotifyChange in its transaction. The
// caller calls done when the batch has ended.
func (s *Store) BeginChange() (notify bool, done func()) { return s.watch.enter() }

// Watched reports whether a client watches, here or elsewhere. A client that begins to watch sees all that was
// committed before Watched returned false.
func (s *Store) Watched() bool {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return time.Now().Before(s.watch.until)
}

// beginNotifying answers a new watcher, unless batches notify already.
func (s *Store) beginNotifying(ctx context.Context) error {
	if !s.watch.renew() {
		return nil
	}
	return s.answerWatchers(ctx, ChangeOthers)
}

// askThen returns a function that runs once a channel is listened to: it asks the present watchers to announce
// themselves.
func (s *Store) askThen(ctx context.Context, begun func()) func() error {
	return func() error {
		err := s.q.ChangesNotify(ctx, []string{string(rune(ChangeAsks))})
		begun()
		return Classify("ask for watchers", err)
	}
}

func (s *Store) answerWatchers(ctx context.Context, kind ChangeKind) error {
	err := s.q.ChangesNotify(ctx, []string{string(rune(kind))})
	if err != nil {
		s.watch.end() // so that the next one begins anew
	}
	return Classify("answer watchers", err)
}

// AnnounceWatching announces that this process watches jobs: for a minute, other processes notify ListenChanges of
// changes.
func (s *Store) AnnounceWatching(ctx context.Context) error {
	return Classify("announce a watcher", s.q.WatchersAnnounce(ctx))
}

// ListenChanges calls begun once it listens, and changed with each change. It ends with ctx or with its connection.
func (s *Store) ListenChanges(ctx context.Context, begun func(), changed func(Change)) error {
	return pgpool.ListenTo(ctx, s.pool, func() error { begun(); return nil }, map[string]func(string) error{
		channelChanges: func(payload string) error {
			changed(readChange(payload))
			return nil
		},
	})
}

// NotifyCommitted notifies the watchers of changes that have been committed.
func (s *Store) NotifyCommitted(ctx context.Context, kind ChangeKind, ids []uuid.UUID) error {
	return Classify("notify of changes", s.q.ChangesNotify(ctx, changePayloads(kind, ids)))
}

// NotifyChange notifies the watchers of changed jobs, with the commit of the transaction that changes them.
func NotifyChange(ctx context.Context, q *gen.Queries, kind ChangeKind, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return q.ChangesNotify(ctx, changePayloads(kind, ids))
}
