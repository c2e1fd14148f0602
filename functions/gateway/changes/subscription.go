package changes

import (
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

// Subscription is the stream of one client: of one job, or of all jobs that match a filter.
type Subscription struct {
	Owner       apidb.Owner // the stream shows jobs of this owner
	JobID       uuid.UUID   // uuid.Nil: a stream of a list
	Filter      jobstore.Filter
	LastEventID string // of the stream that it resumes; empty: a new stream

	place   uint64
	counted uint64 // the number of the last statistics that were sent
	missed  string // why the client has to read again what it shows; empty: it need not
}

// Missed reports whether events after LastEventID may be missing.
func (s *Subscription) Missed() bool { return s.missed != "" }

// wants reports whether the stream sends an event.
func (s *Subscription) wants(e *event) bool {
	switch {
	case s.JobID != uuid.Nil:
		return e.jobID == s.JobID || e.jobID == uuid.Nil && !e.lists && !e.found
	case e.job != nil:
		return s.Filter.Fits(s.Owner, e.job)
	case e.found:
		return s.Filter.Payload != ""
	}
	return e.jobID == uuid.Nil
}

// Join gives a stream its place in the ring: it gets all later events.
func (h *Hub) Join(s *Subscription, log logstore.Place) (leave func()) {
	done := h.Enter()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.recording() {
		h.ring.forget()
	}
	h.streams++
	var named []*attended
	known := true
	if s.JobID == uuid.Nil {
		h.lists[s.Owner]++
		signal(h.toCount)
		if after := s.Filter.After; after != nil {
			known = attend(h.after, *after, &named)
		}
		if payload := s.Filter.Payload; payload != "" {
			known = attend(h.payloads, payload, &named) && known
		}
	} else {
		var job *attended
		job, known = h.follow(s.JobID, log)
		named = append(named, job)
	}
	h.resume(s, known)
	return func() {
		h.leave(s, named)
		done()
	}
}

// follow begins to follow a job. known reports that another stream follows it, or did until shortly before.
func (h *Hub) follow(id uuid.UUID, log logstore.Place) (job *attended, known bool) {
	of, known := h.followed[id]
	if !known {
		of = &followed{place: log}
		h.followed[id] = of
	}
	of.by++
	h.note(id, changes{log: true}) // of lines that were written since the end was read
	signal(h.marked)
	return &of.attended, known
}

// attend makes the hub find out which changed jobs depend on a job, or have a value, and adds it to those that the
// stream names. known reports that another stream names it, or did until shortly before.
func attend[K comparable](by map[K]*attended, key K, named *[]*attended) (known bool) {
	of, known := by[key]
	if !known {
		of = &attended{}
		by[key] = of
	}
	of.by++
	*named = append(*named, of)
	return known
}

// resume finds the place of a stream that reconnects. The events in the ring are incomplete if no stream named its job
// in between.
func (h *Hub) resume(s *Subscription, known bool) {
	s.place = h.ring.last
	if s.LastEventID == "" {
		return
	}
	place, ok := h.ring.place(s.LastEventID)
	if ok {
		_, missed := h.ring.after(place)
		ok = !missed && known
	}
	if !ok {
		s.missed = "the events since Last-Event-ID are not known here"
		return
	}
	s.place = place
}

func (h *Hub) leave(s *Subscription, named []*attended) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	h.streamed = time.Now()
	for _, of := range named {
		of.leave()
	}
	maps.DeleteFunc(h.payloads, func(_ string, value *attended) bool { return value.by == 0 }) // each costs every look
	if s.JobID != uuid.Nil {
		return
	}
	if h.lists[s.Owner]--; h.lists[s.Owner] == 0 {
		delete(h.lists, s.Owner)
	}
}

// Next returns the frames that a stream has to send now, and a channel that is closed when there are more.
func (h *Hub) Next(s *Subscription) (frames [][]byte, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events, missed := h.ring.after(s.place)
	s.place = h.ring.last
	if missed {
		s.missed = "events came faster than they were read"
		events = nil
	}
	if s.missed != "" {
		frames = append(frames, Frame(client.EventReload, h.ring.id(s.place), reloadData(s.missed)))
		s.missed = ""
	}
	for _, e := range events {
		if s.wants(e) {
			frames = append(frames, e.frame)
		}
	}
	if stats := h.stats[s.Owner]; stats != nil && s.JobID == uuid.Nil && stats.number != s.counted {
		frames, s.counted = append(frames, stats.frame), stats.number
	}
	return frames, h.grown
}

// Heartbeat is sent on a stream without events: a comment, and the id of the place up to which no event was for it.
func (h *Hub) Heartbeat(s *Subscription) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Appendf(nil, ": nothing new\nid: %s\n\n", h.ring.id(s.place))
}
