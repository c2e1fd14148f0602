package gateway

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
)

// join gives a stream its place in the ring: later events come after it.
func (h *hub) join(s *stream, log logstore.Place) (leave func()) {
	done := h.enter()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.recording() {
		h.ring.forget()
	}
	h.streams++
	var job *attended
	var known bool
	if s.jobID == uuid.Nil {
		h.lists[s.counts]++
		rouse(h.toCount)
		job, known = h.attendAfter(s.filter.After)
	} else {
		job, known = h.follow(s.jobID, log)
	}
	h.resume(s, known)
	return func() {
		h.leave(s, job)
		done()
	}
}

// follow has a job be followed; known: somebody did already, or has not left long ago.
func (h *hub) follow(id uuid.UUID, log logstore.Place) (job *attended, known bool) {
	of, known := h.followed[id]
	if !known {
		of = &followed{place: log}
		h.followed[id] = of
	}
	of.by++
	h.note(id, changes{log: true}) // of lines that came since the end was read
	rouse(h.marked)
	return &of.attended, known
}

// attendAfter has it be found out which changed jobs come after a job; nil: a list of others.
func (h *hub) attendAfter(id *uuid.UUID) (job *attended, known bool) {
	if id == nil {
		return nil, true
	}
	if job, known = h.after[*id]; !known {
		job = &attended{}
		h.after[*id] = job
	}
	job.by++
	return job, known
}

// resume finds the place of a stream that comes back. What was kept is not enough where nobody named its job meanwhile.
func (h *hub) resume(s *stream, known bool) {
	s.place = h.ring.last
	if s.came == "" {
		return
	}
	place, ok := h.ring.place(s.came)
	if ok {
		_, missed := h.ring.after(place)
		ok = !missed && known
	}
	if !ok {
		s.missed = "the events since " + lastEventID + " are not known here"
		return
	}
	s.place = place
}

func (h *hub) leave(s *stream, job *attended) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	h.streamed = time.Now()
	if job != nil {
		job.leave()
	}
	if s.jobID != uuid.Nil {
		return
	}
	if h.lists[s.counts]--; h.lists[s.counts] == 0 {
		delete(h.lists, s.counts)
	}
}

// next is what a stream is to be sent now, and what is closed when there is more.
func (h *hub) next(s *stream) (frames [][]byte, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events, missed := h.ring.after(s.place)
	s.place = h.ring.last
	if missed {
		s.missed = "events came faster than they were read"
		events = nil
	}
	if s.missed != "" {
		frames = append(frames, frame(eventReload, h.ring.id(s.place), reloadData(s.missed)))
		s.missed = ""
	}
	for _, e := range events {
		if s.wants(e) {
			frames = append(frames, e.frame)
		}
	}
	if stats := h.stats[s.counts]; stats != nil && s.jobID == uuid.Nil && stats.number != s.counted {
		frames, s.counted = append(frames, stats.frame), stats.number
	}
	return frames, h.grown
}

// beat is what a stream that has nothing to say sends: a comment, and up to where nothing was for it.
func (h *hub) beat(s *stream) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Appendf(nil, ": nothing new\nid: %s\n\n", h.ring.id(s.place))
}
