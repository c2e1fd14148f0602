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

// What a ring holds at most. A stream that reads more slowly than events come, and one that comes back after more of
// them, has missed some.
const (
	ringEvents = 2_000
	ringBytes  = 4 << 20
)

// The names of events.
const (
	EventJob      = "job"
	EventProgress = "progress"
	EventLog      = "log"
	EventStats    = "stats"
	EventReload   = "reload"
)

// event is an event as each stream that it is for sends it.
type event struct {
	frame []byte            // as it is sent
	jobID uuid.UUID         // uuid.Nil: of no job
	job   *jobstore.Changed // whose filter decides; nil: it is for streams of the job alone, or for all
	lists bool              // it is for streams of lists alone
}

// ring is the latest events of a hub, for all of its streams: each has only a place in it, the number of the last event
// that it has seen. The ring so is the bounded buffer of each of them.
type ring struct {
	life   string // of this hub: numbers of another one say nothing here
	events []*event
	last   uint64 // number of the last event
	bytes  int
}

// add gives an event the next number.
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

// forget has every stream that comes back miss something: from here on, events were not kept.
func (r *ring) forget() {
	r.events, r.bytes = nil, 0
	r.last++
}

// after gives the events after a place; missed: some of them are not here any more.
func (r *ring) after(place uint64) (events []*event, missed bool) {
	first := r.last - uint64(len(r.events)) // the place before the first event
	if place < first || place > r.last {
		return nil, true
	}
	return r.events[place-first:], false
}

// id is how a place is named to clients.
func (r *ring) id(place uint64) string { return r.life + "-" + strconv.FormatUint(place, 10) }

// place reads an id; false: it is of another hub, or of none.
func (r *ring) place(id string) (place uint64, ok bool) {
	number, ours := strings.CutPrefix(id, r.life+"-")
	place, err := strconv.ParseUint(number, 10, 64)
	return place, ours && err == nil
}

// Frame returns an event in the form of text/event-stream. Its data is JSON of one line.
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

// progressData is the progress of a job's attempt; nil: it is not known.
func progressData(job *jobstore.Changed) []byte {
	progress := jobview.NewProgress(job.Progress)
	if progress == nil {
		return nil
	}
	data, err := json.Marshal(progressBody{job.JobID, job.Attempt, *progress})
	if err != nil {
		return nil // a number and two texts are written
	}
	return data
}

type reloadBody struct {
	Reason string `json:"reason"`
}

func reloadData(reason string) []byte {
	data, err := json.Marshal(reloadBody{reason})
	if err != nil {
		return []byte("{}") // a text is written
	}
	return data
}
