package gateway

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
)

// join gives a stream its place: what is told from now on stands behind it.
func (h *hub) join(s *stream, log apidb.LogPlace) (leave func()) {
	done := h.enter()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.recording() {
		h.ring.forget()
	}
	h.streams++
	job := h.followed[s.jobID]
	h.resume(s, job != nil)
	if s.jobID == uuid.Nil {
		h.lists[s.counts]++
		rouse(h.toCount)
	} else {
		if job == nil {
			job = &followed{place: log}
			h.followed[s.jobID] = job
		}
		job.by++
		h.note(s.jobID, changes{log: true}) // of lines that came since the end was read
		rouse(h.marked)
	}
	return func() {
		h.leave(s, job)
		done()
	}
}

// resume finds the place of a stream that comes back. Of a job that nobody followed meanwhile nothing was kept.
func (h *hub) resume(s *stream, wasFollowed bool) {
	s.place = h.ring.last
	if s.came == "" {
		return
	}
	place, ok := h.ring.place(s.came)
	if ok {
		_, missed := h.ring.after(place)
		ok = !missed && (s.jobID == uuid.Nil || wasFollowed)
	}
	if !ok {
		s.missed = "the events since " + lastEventID + " are not known here"
		return
	}
	s.place = place
}

func (h *hub) leave(s *stream, job *followed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	h.streamed = time.Now()
	if job != nil {
		job.by--
		job.left = time.Now()
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
