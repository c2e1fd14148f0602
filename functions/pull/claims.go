package pull

import (
	"container/list"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// maxAnswerBytes bounds the payloads in one answer. The first may be larger.
const maxAnswerBytes = 4 << 20

// openClaim is a request for attempts that has no answer yet. The function's mutex guards it.
type openClaim struct {
	pullwire.Claim
	by     *pullWorker
	kept   int       // places of attempts that are being claimed
	got    []*inHand // attempts to answer with
	bytes  int       // of the payloads of both
	ready  bool      // of a peek: there is an attempt
	closed bool
	places map[string]*list.Element // in the lists of its types; empty: it has no room, or is closed
	wake   chan struct{}
}

func (c *openClaim) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// workerKey names a pull worker.
type workerKey struct {
	pullwire.Caller
	name string
}

// pullWorker is a program that claims attempts. The function's mutex guards it.
type pullWorker struct {
	key      workerKey
	types    []string // of its last claim
	queues   []string
	open     int // slots of its open claims
	claims   int
	running  int // attempts that it runs
	capacity int // attempts that it runs at once, by its last claim
	seenAt   time.Time
	pace     pace
}

// place is kept for an attempt that is being claimed.
type place struct {
	claim *openClaim
	bytes int // of its payload
}

// takes reports whether attempts of a kind match a claim's types and queues.
func takes(caller pullwire.Caller, types, queues []string, kind runjob.Kind) bool {
	return (caller.Everyone || caller.Owner == kind.OwnerID) && slices.Contains(types, kind.JobType) &&
		(len(queues) == 0 || slices.Contains(queues, kind.Queue))
}

func (c *openClaim) takes(kind runjob.Kind) bool { return takes(c.Caller, c.Types, c.Queues, kind) }

// hasRoom reports whether an attempt with a payload of this size fits into the answer.
func (c *openClaim) hasRoom(bytes int) bool {
	taken := c.kept + len(c.got)
	return !c.closed && taken < c.Slots && (taken == 0 || c.bytes+bytes <= maxAnswerBytes)
}

// open begins a claim. Attempts that wait already are given to it at once. It returns nil if the pull workers of this
// owner already ask for too many different things.
func (f *Function) open(asked pullwire.Claim) *openClaim {
	slices.Sort(asked.Types)
	slices.Sort(asked.Queues)
	fresh := f.fresh()
	f.mu.Lock()
	key := workerKey{asked.Caller, asked.Worker}
	w := f.workers[key]
	if w == nil {
		w = &pullWorker{key: key}
	}
	now := time.Now()
	isSame := w.isThere(now, f.timing.present) &&
		slices.Equal(w.types, asked.Types) && slices.Equal(w.queues, asked.Queues)
	if !isSame && !f.mayAsk(now, asked) {
		f.mu.Unlock()
		return nil
	}
	f.workers[key] = w
	c := &openClaim{Claim: asked, by: w, places: map[string]*list.Element{}, wake: make(chan struct{}, 1)}
	had := w.capacity
	w.types, w.queues, w.seenAt = asked.Types, asked.Queues, now
	w.open += asked.Slots
	w.claims++
	w.capacity = w.open + w.running
	f.list(c)
	f.unasked = slices.DeleteFunc(f.unasked, func(h *inHand) bool {
		return h.over || fresh && !c.Peek && c.takes(h.kind()) && c.hasRoom(h.bytes()) && c.give(h)
	})
	if fresh && c.Peek && slices.ContainsFunc(f.unasked, func(h *inHand) bool { return c.takes(h.kind()) }) {
		c.ready = true
		c.rouse()
	}
	f.mu.Unlock()
	f.worker.Demanded(!isSame || w.capacity > had) // otherwise each claim would cost a heartbeat
	return c
}

// close ends a claim, and returns the attempts that it got. An attempt for which it keeps a place goes to another one.
func (f *Function) close(c *openClaim) []*inHand {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.by.open -= c.Slots
		c.by.claims--
		c.by.seenAt = time.Now()
		f.unlist(c)
	}
	got := c.got
	c.got = nil
	return got
}

// list puts a claim with room at the end of the lists of its types.
func (f *Function) list(c *openClaim) {
	for _, name := range c.Types {
		if c.places[name] == nil {
			if f.claims[name] == nil {
				f.claims[name] = list.New()
			}
			c.places[name] = f.claims[name].PushBack(c)
		}
	}
}

func (f *Function) unlist(c *openClaim) {
	for name, element := range c.places {
		if f.claims[name].Remove(element); f.claims[name].Len() == 0 {
			delete(f.claims, name)
		}
	}
	clear(c.places)
}

// find returns the oldest claim that takes an attempt; nil: none does.
func (f *Function) find(kind runjob.Kind, bytes int) *openClaim {
	same := f.claims[kind.JobType]
	if same == nil {
		return nil
	}
	for e := same.Front(); e != nil; e = e.Next() {
		c := e.Value.(*openClaim)
		if c.takes(kind) && !c.Peek && c.hasRoom(bytes) {
			return c
		}
	}
	return nil
}

// peeked answers the peeks whose claims would get an attempt of that kind.
func (f *Function) peeked(kind runjob.Kind) {
	same := f.claims[kind.JobType]
	if same == nil {
		return
	}
	for e := same.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*openClaim); c.Peek && !c.ready && c.takes(kind) {
			c.ready = true
			c.rouse()
		}
	}
}

// wants reports whether the worker shall claim an attempt, and keeps a place for it.
func (f *Function) wants(kind runjob.Kind, key workerdb.Key, bytes int) bool {
	if !f.fresh() {
		return false // after the next heartbeat that gets through the worker asks again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places[key] != nil {
		return true
	}
	c := f.find(kind, bytes)
	if c == nil {
		f.peeked(kind)
		return false
	}
	f.places[key] = &place{c, bytes}
	c.kept++
	c.bytes += bytes
	if !c.hasRoom(0) {
		f.unlist(c)
	}
	return true
}

// forget gives up the place of an attempt that was not claimed.
func (f *Function) forget(key workerdb.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.places[key]; p != nil {
		f.free(key, p)
	}
}

// free removes an attempt's place. The claim may have room again.
func (f *Function) free(key workerdb.Key, p *place) {
	delete(f.places, key)
	p.claim.kept--
	p.claim.bytes -= p.bytes
	if !p.claim.closed {
		f.list(p.claim)
	}
	p.claim.rouse()
}
