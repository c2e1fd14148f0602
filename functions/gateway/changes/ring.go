package changes

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// The limits of a ring. A stream that reads more slowly than that, or resumes after that many events, has missed some.
const (
	ringEvents = 2_000
	ringBytes  = 4 << 20
)

// event is an event as it is sent to each of its streams.
type event struct {
	frame []byte            // the text that is sent
	jobID uuid.UUID         // uuid.Nil: the event is about no single job
	job   *jobstore.Changed // matched against filters; nil: for streams of jobID alone, or for all
	lists bool              // only for streams of lists
	found bool              // only for streams that filter by payload
}

// ring holds the latest events of a hub for all of its streams: a stream has only a place in it, the number of the last
// event that it has sent. The ring is thus the bounded buffer of each stream.
type ring struct {
	life   string // names this hub: the numbers of another one do not apply
	events []*event
	last   uint64 // number of the last event
	bytes  int
}

// add appends an event with the next number.
func (r *ring) add(name string, data []byte, e *event) {
	r.last++
	e.frame = Frame(name, r.id(r.last), data)
	r.events, r.bytes = append(r.events, e), r.bytes+len(e.frame)
	for len(r.events) > ringEvents || r.bytes > ringBytes && len(r.events) > 1 {
		r.bytes -= len(r.events[0].frame)
		r.events[0] = nil
		r.events = r.events[1:]
	}
}

// forget makes every stream that resumes miss events: later ones were not recorded.
func (r *ring) forget() {
	r.events, r.bytes = nil, 0
	r.last++
}

// after returns the events after a place. missed reports that some of them are no longer in the ring.
func (r *ring) after(place uint64) (events []*event, missed bool) {
	first := r.last - uint64(len(r.events)) // the place before the first event
	if place < first || place > r.last {
		return nil, true
	}
	return r.events[place-first:], false
}

// id is the name of a place for clients.
func (r *ring) id(place uint64) string { return r.life + "-" + strconv.FormatUint(place, 10) }

// place parses an id; false: it is invalid, or of another hub.
func (r *ring) place(id string) (place uint64, ok bool) {
	number, ours := strings.CutPrefix(id, r.life+"-")
	place, err := strconv.ParseUint(number, 10, 64)
	return place, ours && err == nil
}

// Frame returns an event in the format of text/event-stream. Its data is one line of JSON.
func Frame(name, id string, data []byte) []byte {
	head := "event: " + name + "\n"
	if id != "" {
		head = "id: " + id + "\n" + head
	}
	return fmt.Appendf(nil, "%sdata: %s\n\n", head, data)
}

type progressBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Attempt int       `json:"attempt"`
	jobview.Progress
}

// progressData is the JSON of an attempt's progress; nil: none is known.
func progressData(job *jobstore.Changed) []byte {
	progress := jobview.NewProgress(job.Progress)
	if progress == nil {
		return nil
	}
	data, err := json.Marshal(progressBody{job.JobID, job.Attempt, *progress})
	if err != nil {
		return nil // unreachable: a number and two texts can always be encoded
	}
	return data
}

type reloadBody struct {
	Reason string `json:"reason"`
}

func reloadData(reason string) []byte {
	data, err := json.Marshal(reloadBody{reason})
	if err != nil {
		return []byte("{}") // unreachable: a text can always be encoded
	}
	return data
}
