package protocol

import "math/bits"

const (
	attempts = 8 // rows 1 to 7; a dispatch that needs more panics
	workers  = 2
)

// state is everything that is known about the job at one moment. It is comparable, and two ways to
// the same state go on as one.
type state struct {
	api     api
	job     job
	rows    [attempts]row
	workers [workers]worker
	kafka   kafka
	left    Budget

	// Witnesses outside the system, a bit an attempt: which handlers were started, which dead letters said.
	started, dead uint8
}

// api is the API's row and its kept command.
type api struct {
	version  uint8 // 0: not heard of yet
	shown    shown
	accepted bool
	taken    uint8 // commands that got their 202
	retries  uint8 // which of them are retries, a bit each; the others are cancels
	deletes  uint8 // and which are deletes
	kept     bool  // the last of them is not confirmed

	// The callbacks that got their 200, a bit an attempt; an attempt that was given up since none came counts as failed.
	completed, failed uint8
	attempt           uint8 // the latest that it has heard of
	gone              bool  // the row was deleted
}

// shown is as much of a status as the API's decisions depend on.
type shown uint8

const (
	shownOpen shown = iota // no end, and no attempt under way; any state that is no end where no attempt can wait
	shownCompleted
	shownFailed
	shownCancelled
	shownInFlight
	shownWaiting
	lastShown = shownWaiting
)

func (s shown) ended() bool { return s >= shownCompleted && s <= shownCancelled }

// knows reports whether a job-status would change nothing but the version.
func (a api) knows(st snapshot) bool {
	return a.version > 0 && st.shown == a.shown && st.attempt == a.attempt && !st.deleted &&
		(!a.kept || st.command < a.taken)
}

// retrying reports whether a retry is on its way, so that the end that is shown is known to be over.
func (a api) retrying() bool { return a.kept && a.retries>>a.taken&1 == 1 }

// cancelling reports whether a cancel was asked for that may still count.
func (a api) cancelling() bool {
	return a.taken > 0 && (a.retries|a.deletes)>>a.taken&1 == 0 && !a.shown.ended()
}

// over reports whether the API knows that an attempt is over.
func (a api) over(attempt uint8) bool {
	return a.gone || a.version > 0 && (a.attempt > attempt ||
		a.attempt == attempt && a.shown != shownInFlight && a.shown != shownWaiting)
}

// called reports whether a callback of an attempt was taken, or the attempt given up.
func (a api) called(attempt uint8) bool { return (a.completed|a.failed)>>attempt&1 == 1 }

// row is an attempt's, in the worker database.
type row struct {
	outcome outcome
	owner   uint8 // nobody, a worker, or gone; nobody once it has an outcome
}

// Workers are numbered from 1. A killed one's successor has a new id.
const (
	nobody uint8 = 0
	gone   uint8 = workers + 1
)

// worker is a process and what is only in its memory, a bit an attempt.
type worker struct {
	life                 life
	asked, held, running uint8 // claimed without an answer yet, claimed, started
}

type life uint8

const (
	up     life = iota // its beats get through
	frozen             // does nothing, and the others see it silent
	woken              // goes on, but its next beat is still to come
)

// kafka is what was said.
type kafka struct {
	records  [2]uint64
	statuses [12]snapshot // in the order of their versions
}

// snapshot is a job-status.
type snapshot struct {
	version, command, attempt uint8
	shown                     shown
	deleted                   bool // the tombstone, with the end that the job had
}

// record is topic<<3 | number; the number is an attempt's or a command's.
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

// canonical makes states alike that go on alike. It reports whether it exchanged the workers.
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

// weigh gives a worker a number by all that makes it differ from another.
func (s *state) weigh(w uint8) (weight uint64) {
	for i, r := range s.rows {
		if r.owner == w {
			weight |= 1 << i
		}
	}
	me := s.workers[w-1]
	return weight<<32 | uint64(me.running)<<24 | uint64(me.held)<<16 | uint64(me.asked)<<8 | uint64(me.life)
}

// forgetStatuses drops the job-status records that the projection would ignore or learn nothing
// from, and of several in a row that say the same all but the last.
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

// renumberVersions keeps the order of all versions and forgets how far apart they are; 0 stays 0.
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
