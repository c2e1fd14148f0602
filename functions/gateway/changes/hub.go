// Package changes follows the changes of jobs for event streams and waiting requests.
package changes

import (
	"context"
	"encoding/hex"
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
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// lookEvery is the pace at which changed jobs are read, at most mostLooked of them: nobody follows more by eye, and
	// fifty dashboards cost what one does. Of more than mostBehind at once streams get a reload, one in reloadEvery.
	lookEvery   = 100 * time.Millisecond
	mostLooked  = 50
	mostBehind  = 300
	reloadEvery = 3 * time.Second

	// linger is how long the hub goes on after the last one has left: a stream that comes back misses nothing.
	linger = 30 * time.Second

	// beginPatience is how long streams that were there before the hub listened wait for their reload.
	beginPatience = 250 * time.Millisecond

	tellEvery     = 50 * time.Millisecond // the pace at which jobs accepted here are told of
	statsEvery    = 5 * time.Second
	hubPatience   = 5 * time.Second // of a statement
	listenPause   = time.Second     // before it listens anew
	eventLogBytes = 64 << 10        // of log lines in one event
	mostAccepted  = 1_000           // jobs accepted here that are told of at once
)

// Hub follows changes for streams and waiting requests: one connection listens to the notifications of projections, and
// one query reads what has changed, for all of them. It does nothing while there is no stream and no waiting request.
//
// RunAnnouncements, which runs beside it, announces accepted jobs, also while no stream is open here.
//
// Nothing is lost in silence. A stream has its place in the ring before it is answered, so what is committed after
// the answer stands behind it. What the hub could not read, or was not told of, is a reload: while it did not listen,
// before a projection began to tell (see apidb.ListenWatchers), and where more changed than it reads.
type Hub struct {
	db       *apidb.Store
	jobs     *jobstore.Store
	controls *controlstore.Store
	logs     *logstore.Store

	// Ends is notified of jobs that have ended. Like the functions below, it is set before Run.
	Ends *waiters.Waiters
	// ShowJob and ShowLines return the data of events about a job and its log. ReadStats returns that of an owner's
	// statistics, and the part that shows whether they have changed.
	ShowJob   func(context.Context, *jobstore.Changed) ([]byte, error)
	ShowLines func(context.Context, uuid.UUID, []logstore.Line) ([]byte, error)
	ReadStats func(context.Context, apidb.Owner) (stats, compared []byte, err error)

	mu        sync.Mutex
	here      int       // streams and held answers
	left      time.Time // when the last of them left
	streams   int
	streamed  time.Time           // when the last stream left
	listening bool                // to what projections tell
	answered  time.Time           // when a projection last said that it tells
	lists     map[apidb.Owner]int // streams of lists, by whose statistics they show
	followed  map[uuid.UUID]*followed
	after     map[uuid.UUID]*attended // jobs that filters of lists name as after
	changed   map[uuid.UUID]changes
	order     []uuid.UUID // the keys of changed, oldest first
	reload    bool        // lists have missed something
	over      bool        // so much changes that single jobs are not told of any more
	reloaded  time.Time
	accepted  map[apidb.ChangeKind][]uuid.UUID // changed here, and told to nobody yet
	ring      ring
	stats     map[apidb.Owner]*statsFrame
	grown     chan struct{} // closed when there is something new for streams

	come, asked, marked, toTell, toCount chan struct{} // have one value when there is something to do
	closing                              chan struct{} // closed when the process is about to end

	trouble, reading, telling, counting telemetry.Trouble
}

// changes are what has changed of a job.
type changes struct{ status, progress, log bool }

// attended is a job that streams name.
type attended struct {
	by   int
	left time.Time // when the last of them left
}

func (a *attended) leave() { a.by, a.left = a.by-1, time.Now() }

// isOver reports whether no stream names the job, and none that did can come back.
func (a *attended) isOver() bool { return a.by == 0 && time.Since(a.left) > linger }

// followed is a job that streams are of.
type followed struct {
	attended
	place logstore.Place
	shown string // digest of how it was last sent
}

// statsFrame is the latest statistics of an owner.
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
		after:    map[uuid.UUID]*attended{},
		accepted: map[apidb.ChangeKind][]uuid.UUID{},
		stats:    map[apidb.Owner]*statsFrame{}, grown: make(chan struct{}),
		come: one(), asked: one(), marked: one(), toTell: one(), toCount: one(), closing: make(chan struct{}),
		trouble:  telemetry.Trouble{What: "listen to changes of jobs for streams and held answers"},
		reading:  telemetry.Trouble{What: "read changed jobs for streams"},
		telling:  telemetry.Trouble{What: "tell of jobs that were accepted here"},
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

// tidy forgets jobs that no stream has followed for a while, and statistics that no stream shows.
func (h *Hub) tidy() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, job := range h.followed {
		if job.isOver() {
			delete(h.followed, id)
		}
	}
	for id, job := range h.after {
		if job.isOver() {
			delete(h.after, id)
		}
	}
	for owner := range h.stats {
		if h.lists[owner] == 0 {
			delete(h.stats, owner)
		}
	}
}

// listen receives the notifications of projections. Whenever it did not listen, all streams may have missed changes.
func (h *Hub) listen(ctx context.Context) {
	for first := true; ; first = false {
		err := h.db.ListenChanges(ctx, func() {
			h.trouble.Note(ctx, nil)
			h.setListening(true)
			h.announce(ctx)
			h.miss(!first)
		}, h.hear)
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
	if on { // projections that begin to tell are waited for: one reload is enough
		h.reloaded = time.Now().Add(beginPatience - reloadEvery)
	} else {
		h.answered = time.Time{}
	}
}

// hear handles a notification.
func (h *Hub) hear(c apidb.Change) {
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
		h.miss(false)
	case apidb.ChangeMany, apidb.ChangeOthers:
		h.miss(false)
	default: // of a later version
		h.miss(false)
	}
}

// miss has everything looked at again: something may have changed that nobody told. Streams of single jobs are told by
// the hub itself, which reads their jobs, unless all are to be.
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

// mark has changed jobs read.
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

// recording: there is a stream, or one may come back. The caller holds the mutex.
func (h *Hub) recording() bool { return h.streams > 0 || time.Since(h.streamed) < linger }

// addReload adds the event by which clients read again what they show. The caller holds the mutex.
func (h *Hub) addReload(lists bool, why string) {
	h.ring.add(EventReload, reloadData(why), &event{lists: lists})
	h.reloaded, h.reload = time.Now(), false
	h.grow()
}

// grow wakes all streams. The caller holds the mutex.
func (h *Hub) grow() {
	close(h.grown)
	h.grown = make(chan struct{})
}
