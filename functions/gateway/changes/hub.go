// Package changes follows the changes of jobs for event streams and waiting requests.
//
// Why streams share one ring: docs/decisions/api.md#streams-share-one-ring
package changes

import (
	"context"
	"encoding/hex"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/waiters"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// lookEvery is the interval between reads of changed jobs, each of at most mostLooked jobs: no user could follow
	// more on a screen, and fifty dashboards cost no more than one. If more than mostBehind jobs wait to be read,
	// streams get a reload event instead, at most one in reloadEvery.
	lookEvery   = 100 * time.Millisecond
	mostLooked  = 50
	mostBehind  = 300
	reloadEvery = 3 * time.Second

	// linger is how long the hub continues after the last stream has left, so that a stream that reconnects misses
	// nothing.
	linger = 30 * time.Second

	// beginPatience is how long streams that were open before the hub listened wait for their reload event.
	beginPatience = 250 * time.Millisecond

	// payloadPatience bounds one look into payloads, for all values that streams look for.
	payloadPatience = 500 * time.Millisecond

	announceEvery = 50 * time.Millisecond // the interval between notifications of accepted jobs
	statsEvery    = 5 * time.Second
	hubPatience   = 5 * time.Second // for a statement
	listenPause   = time.Second     // before it listens again
	eventLogBytes = 64 << 10        // the log lines in one event
	mostAccepted  = 1_000           // accepted jobs in one notification
)

// Hub follows changes for streams and waiting requests: one connection listens to the notifications of the projections,
// and one query reads the changed jobs for all of them. The hub is idle while there is no stream and no waiting
// request.
//
// RunAnnouncements, which runs beside it, announces accepted jobs, also while no stream is open here.
//
// A stream never misses a change without an event that reports it. A stream takes its place in the ring before its
// response starts, so every later commit has a later place. When changes may have been missed, the hub adds a reload
// event: while it did not listen, before a projection began to notify (see apidb.ListenWatchers), and when more has
// changed than it reads.
type Hub struct {
	db       *apidb.Store
	jobs     *jobstore.Store
	controls *controlstore.Store
	logs     *logstore.Store

	// Ends is notified of jobs that have ended. Like the functions below, it is set before Run.
	Ends *waiters.Waiters
	// ShowJob and ShowLines return the data of events about a job and its log. ReadStats returns an owner's statistics,
	// and the part of them that is compared to find out whether they have changed.
	ShowJob   func(context.Context, *jobstore.Changed) ([]byte, error)
	ShowLines func(context.Context, uuid.UUID, []logstore.Line) ([]byte, error)
	ReadStats func(context.Context, apidb.Owner) (stats, compared []byte, err error)
	// ForgetQueues drops the cached list of created queues.
	ForgetQueues func()

	mu        sync.Mutex
	here      int       // streams and held responses
	left      time.Time // when the last of them left
	streams   int
	streamed  time.Time           // when the last stream left
	listening bool                // to notifications of projections
	answered  time.Time           // when a projection last confirmed that it sends notifications
	lists     map[apidb.Owner]int // streams of lists, by the owner whose statistics they show
	followed  map[uuid.UUID]*followed
	after     map[uuid.UUID]*attended // jobs that filters of lists name as after
	payloads  map[string]*attended    // what filters of lists look for in payloads
	changed   map[uuid.UUID]changes
	order     []uuid.UUID // the keys of changed, oldest first
	reload    bool        // streams of lists have missed changes
	over      bool        // too many jobs have changed; streams get a reload event
	unfound   bool        // streams that filter by payload get a reload event soon
	reloaded  time.Time
	accepted  map[apidb.ChangeKind][]uuid.UUID // accepted or changed here, not yet announced
	ring      ring
	stats     map[apidb.Owner]*statsFrame
	grown     chan struct{} // closed when there are new events

	come, asked, marked, toAnnounce, toCount chan struct{} // have one value when there is something to do
	closing                                  chan struct{} // closed when the process is about to end

	trouble, reading, telling, counting telemetry.Trouble
}

// changes are the parts of a job that have changed.
type changes struct{ status, progress, log bool }

// attended is a job or a value that streams name.
type attended struct {
	by   int
	left time.Time // when the last of them left
}

func (a *attended) leave() { a.by, a.left = a.by-1, time.Now() }

// isOver reports whether no stream names it, and none that did can resume.
func (a *attended) isOver() bool { return a.by == 0 && time.Since(a.left) > linger }

// followed is a job with streams of its own.
type followed struct {
	attended
	place logstore.Place
	shown string // digest of the last event
}

// statsFrame is an owner's latest statistics.
type statsFrame struct {
	frame, compared []byte
	number          uint64
}

// New makes a hub.
func New(
	db *apidb.Store, jobs *jobstore.Store, controls *controlstore.Store, logs *logstore.Store,
) *Hub {
	life := uuid.New()
	one := func() chan struct{} { return make(chan struct{}, 1) }
	return &Hub{
		db: db, jobs: jobs, controls: controls, logs: logs, ring: ring{life: hex.EncodeToString(life[:6])},
		lists: map[apidb.Owner]int{}, followed: map[uuid.UUID]*followed{}, changed: map[uuid.UUID]changes{},
		after: map[uuid.UUID]*attended{}, payloads: map[string]*attended{},
		accepted: map[apidb.ChangeKind][]uuid.UUID{},
		stats:    map[apidb.Owner]*statsFrame{}, grown: make(chan struct{}),
		come: one(), asked: one(), marked: one(), toAnnounce: one(), toCount: one(), closing: make(chan struct{}),
		trouble:  telemetry.Trouble{What: "listen to changes of jobs for streams and held answers"},
		reading:  telemetry.Trouble{What: "read changed jobs for streams"},
		telling:  telemetry.Trouble{What: "announce accepted jobs"},
		counting: telemetry.Trouble{What: "send statistics to streams"},
	}
}

// Closing is closed when the process is about to end.
func (h *Hub) Closing() <-chan struct{} { return h.closing }

// signal fills a channel that has room for one value.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Enter keeps the hub listening for a waiting request, until the caller calls leave.
func (h *Hub) Enter() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.here++
	signal(h.come)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.here--
		h.left = time.Now()
	}
}

// IsNotified reports whether projections notify this hub of changes at the moment.
func (h *Hub) IsNotified() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listening && time.Since(h.answered) < 3*apidb.WatchEvery
}

// Run follows changes until ctx ends. Streams end with it.
func (h *Hub) Run(ctx context.Context) {
	context.AfterFunc(ctx, func() { close(h.closing) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.come:
			h.watch(ctx)
		}
	}
}

// watch follows changes while there is a stream or a waiting request, and for linger longer.
func (h *Hub) watch(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	var all errgroup.Group
	for _, part := range []func(context.Context){h.listen, h.lookOn, h.countOn} {
		all.Go(func() error { part(ctx); return nil })
	}
	again := time.NewTicker(apidb.WatchEvery)
	defer again.Stop()
	for h.isWanted() {
		select {
		case <-ctx.Done():
		case <-h.asked:
			h.announce(ctx)
			continue
		case <-again.C:
			h.announce(ctx)
			h.tidy()
			continue
		}
		break
	}
	end()
	_ = all.Wait()
}

func (h *Hub) isWanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.here > 0 || time.Since(h.left) < linger
}

// announce notifies all processes that change jobs that this gateway watches.
func (h *Hub) announce(ctx context.Context) {
	if err := edge.Within(ctx, hubPatience, h.db.AnnounceWatching); err != nil && ctx.Err() == nil {
		h.trouble.Note(ctx, err)
	}
}

// tidy removes jobs that no stream has named for a while, and statistics that no stream shows.
func (h *Hub) tidy() {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.followed, func(_ uuid.UUID, job *followed) bool { return job.isOver() })
	maps.DeleteFunc(h.after, func(_ uuid.UUID, job *attended) bool { return job.isOver() })
	for owner := range h.stats {
		if h.lists[owner] == 0 {
			delete(h.stats, owner)
		}
	}
}

// listen receives the notifications of projections. After any time without a connection, all streams may have missed
// changes.
func (h *Hub) listen(ctx context.Context) {
	for first := true; ; first = false {
		err := h.db.ListenChanges(ctx, func() {
			h.trouble.Note(ctx, nil)
			h.setListening(true)
			h.announce(ctx)
			h.miss(!first)
		}, h.notified)
		h.setListening(false)
		if ctx.Err() != nil {
			return
		}
		h.trouble.Note(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenPause):
		}
	}
}

func (h *Hub) setListening(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listening = on
	if on { // wait for projections that begin to notify, so that one reload event is enough
		h.reloaded = time.Now().Add(beginPatience - reloadEvery)
	} else {
		h.answered = time.Time{}
	}
}

// notified handles a notification.
func (h *Hub) notified(c apidb.Change) {
	switch c.Kind {
	case apidb.ChangeBegins, apidb.ChangeHere:
		h.mu.Lock()
		h.answered = time.Now()
		h.mu.Unlock()
		if c.Kind == apidb.ChangeBegins {
			h.miss(false)
		}
	case apidb.ChangeAsks:
		signal(h.asked)
	case apidb.ChangeEnded:
		h.Ends.Notify(c.JobIDs)
		h.mark(c.JobIDs, changes{status: true})
	case apidb.ChangeGone:
		h.Ends.Notify(c.JobIDs)
		h.markFollowed(c.JobIDs, changes{status: true})
	case apidb.ChangeStatus:
		h.mark(c.JobIDs, changes{status: true})
	case apidb.ChangeProgress:
		h.mark(c.JobIDs, changes{progress: true})
	case apidb.ChangeLog:
		h.markFollowed(c.JobIDs, changes{log: true})
	case apidb.ChangeControls:
		h.controls.ForgetControls()
		h.ForgetQueues()
		h.miss(false)
	case apidb.ChangeMany, apidb.ChangeOthers:
		h.miss(false)
	default: // of a later version
		h.miss(false)
	}
}

// miss makes the hub read again all jobs that streams name, because notifications may have been lost. Streams of lists
// get a reload event. Streams of single jobs need none, because the hub reads their jobs, unless all is true.
func (h *Hub) miss(all bool) {
	h.Ends.NotifyAll()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.recording() {
		return
	}
	for id := range h.followed {
		h.note(id, changes{status: true, progress: true, log: true})
	}
	h.reload = true
	if all {
		h.addReload(false, "the gateway had lost its connection to the database")
	}
	signal(h.marked)
}

// mark queues changed jobs to be read.
func (h *Hub) mark(ids []uuid.UUID, what changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.recording() {
		return
	}
	for _, id := range ids {
		if _, known := h.changed[id]; known || len(h.changed) < mostBehind || h.followed[id] != nil {
			h.note(id, what)
		} else {
			h.reload, h.over = true, true
		}
	}
	signal(h.marked)
}

// markFollowed is mark for changes that only streams of single jobs show.
func (h *Hub) markFollowed(ids []uuid.UUID, what changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if h.followed[id] != nil {
			h.note(id, what)
			signal(h.marked)
		}
	}
}

// note records a change. The caller holds the mutex.
func (h *Hub) note(id uuid.UUID, what changes) {
	was, known := h.changed[id]
	if !known {
		h.order = append(h.order, id)
	}
	h.changed[id] = changes{was.status || what.status, was.progress || what.progress, was.log || what.log}
}

// recording reports whether there is a stream, or one may resume. The caller holds the mutex.
func (h *Hub) recording() bool { return h.streams > 0 || time.Since(h.streamed) < linger }

// addReload adds the event that makes clients read again what they show. The caller holds the mutex.
func (h *Hub) addReload(lists bool, why string) {
	h.ring.add(client.EventReload, reloadData(why), &event{lists: lists})
	h.reloaded, h.reload = time.Now(), false
	h.grow()
}

// grow wakes all streams. The caller holds the mutex.
func (h *Hub) grow() {
	close(h.grown)
	h.grown = make(chan struct{})
}
