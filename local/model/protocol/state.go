package protocol

import "math/bits"

const (
	attempts = 8 // rows 1 to 7; a dispatch that needs more panics
	workers  = 2
)

// state is everything that is stored about the job at one moment. It is comparable: two paths to the same state
// continue as one.
type state struct {
	api     api
	job     job
	rows    [attempts]row
	workers [workers]worker
	kafka   kafka
	left    Budget

	// Witnesses outside the system, one bit for each attempt: which handlers were started, which dead letters published.
	started, dead uint8
}

// api is the API's row and its stored command.
type api struct {
	version  uint8 // 0: no status received yet
	shown    shown
	accepted bool
	taken    uint8 // commands that got a 202
	retries  uint8 // which of them are retries, one bit each; the others are cancels
	deletes  uint8 // which of them are deletes
	kept     bool  // the last one is stored and not confirmed

	// The callbacks that got a 200, one bit for each attempt; an attempt whose deadline passed without one counts as
	// failed.
	completed, failed uint8
	attempt           uint8 // the latest one of which it has received a status
	gone              bool  // the row was deleted
}

// shown has the parts of a status on which the API's decisions depend.
type shown uint8

const (
	shownOpen shown = iota // not ended, and no attempt under way; without Waits any state that has not ended
	shownCompleted
	shownFailed
	shownCancelled
	shownInFlight
	shownWaiting
	lastShown = shownWaiting
)

func (s shown) ended() bool { return s >= shownCompleted && s <= shownCancelled }

// knows reports whether a job-status would change only the version.
func (a api) knows(st snapshot) bool {
	return a.version > 0 && st.shown == a.shown && st.attempt == a.attempt && !st.deleted &&
		(!a.kept || st.command < a.taken)
}

// retrying reports whether a retry is pending, so that the shown end is not final.
func (a api) retrying() bool { return a.kept && a.retries>>a.taken&1 == 1 }

// cancelling reports whether a cancel is pending that may still count.
func (a api) cancelling() bool {
	return a.taken > 0 && (a.retries|a.deletes)>>a.taken&1 == 0 && !a.shown.ended()
}

// over reports whether the API has received that an attempt has ended.
func (a api) over(attempt uint8) bool {
	return a.gone || a.version > 0 && (a.attempt > attempt ||
		a.attempt == attempt && a.shown != shownInFlight && a.shown != shownWaiting)
}

// called reports whether the API has accepted a callback of an attempt, or has failed the attempt.
func (a api) called(attempt uint8) bool { return (a.completed|a.failed)>>attempt&1 == 1 }

// row is what the workers' database has of an attempt.
type row struct {
	outcome outcome
	owner   uint8 // noWorker, a worker, or gone; noWorker once it has an outcome
}

// Workers are numbered from 1. The successor of a killed worker has a new id.
const (
	noWorker uint8 = 0
	gone     uint8 = workers + 1
)

// worker is a process and its memory, one bit for each attempt.
type worker struct {
	life                 life
	asked, held, running uint8 // claimed and not answered yet, claimed, started
}

type life uint8

const (
	up     life = iota // its heartbeats get through
	frozen             // does nothing, and is silent to the others
	woken              // goes on, but has not sent its next heartbeat yet
)

// kafka has the published records.
type kafka struct {
	records  [2]uint64
	statuses [12]snapshot // in the order of their versions
}

// snapshot is a job-status.
type snapshot struct {
	version, command, attempt uint8
	shown                     shown
	deleted                   bool // the deletion, with the job's end
}

// record is topic<<3 | number; the number is that of an attempt or a command.
type record uint8

func (t topic) record(n uint8) record { return record(t)<<3 | record(n) }
func (r record) topic() topic         { return topic(r >> 3) }
func (r record) number() uint8        { return uint8(r & 7) }

func (k *kafka) add(r record)  { k.records[r>>6] |= 1 << (r & 63) }
func (k *kafka) drop(r record) { k.records[r>>6] &^= 1 << (r & 63) }

func (k *kafka) each(f func(record)) {
	for i, word := range k.records {
		for ; word != 0; word &= word - 1 {
			f(record(i<<6 + bits.TrailingZeros64(word)))
		}
	}
}

// canonical makes states equal that continue equally. It reports whether it exchanged the workers.
func (s *state) canonical(keepOld bool) (exchanged bool) {
	s.forgetStatuses(keepOld)
	s.renumberVersions()
	a, b := s.workers[0], s.workers[1]
	if s.weigh(1) <= s.weigh(2) {
		return false
	}
	s.workers = [workers]worker{b, a}
	for i, r := range s.rows {
		if r.owner == 1 || r.owner == 2 {
			s.rows[i].owner = 3 - r.owner
		}
	}
	return true
}

// weigh returns a number that has everything in which a worker differs from another.
func (s *state) weigh(w uint8) (weight uint64) {
	for i, r := range s.rows {
		if r.owner == w {
			weight |= 1 << i
		}
	}
	me := s.workers[w-1]
	return weight<<32 | uint64(me.running)<<24 | uint64(me.held)<<16 | uint64(me.asked)<<8 | uint64(me.life)
}

// forgetStatuses drops the job-status records that would not change the API's row, and of several equal ones in a row
// all but the last.
func (s *state) forgetStatuses(keepOld bool) {
	in, n := s.kafka.statuses, 0
	s.kafka.statuses = [len(in)]snapshot{}
	for i, st := range in {
		if st.version == 0 {
			break
		}
		old := s.api.gone || !keepOld && (st.version <= s.api.version || n == 0 && s.api.knows(st))
		again := i+1 < len(in) && in[i+1].version > 0 && in[i+1].shown == st.shown && in[i+1].command == st.command &&
			in[i+1].attempt == st.attempt && in[i+1].deleted == st.deleted
		if !old && !again {
			s.kafka.statuses[n] = st
			n++
		}
	}
}

// renumberVersions keeps the order of all versions and drops the gaps between them; 0 stays 0.
func (s *state) renumberVersions() {
	present := uint64(1)<<s.api.version | 1<<s.job.version
	for _, st := range s.kafka.statuses {
		present |= 1 << st.version
	}
	rank := func(v uint8) uint8 { return uint8(bits.OnesCount64(present >> 1 << 1 & (1<<v<<1 - 1))) }
	s.api.version, s.job.version = rank(s.api.version), rank(s.job.version)
	for i, st := range s.kafka.statuses {
		s.kafka.statuses[i].version = rank(st.version)
	}
}
