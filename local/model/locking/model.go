package locking

// Within is how many seconds after a freeze the other processes must have published.
const Within = 10

// Limits has the parameters of a walk.
type Limits struct {
	Processes int // each works on one of the two jobs, in turn
	Frozen    int // how many of them run on the node that freezes

	// The server's timeouts, in seconds. 0: none.
	Lock    uint8 // lock_timeout
	Idle    uint8 // idle_in_transaction_session_timeout
	Sending uint8 // tcp_user_timeout, for rows that the client does not read

	PayloadsUnderLock bool // the rows are read before the commit
}

const most = 6 // processes

// phase is the phase of a process's work, and of its session in the server.
type phase uint8

const (
	starts      phase = iota
	waitsForRow       // for the lock on its job's row
	hasRow            // and the client acts next
	waitsToDispatch
	thinks    // holds the ledger's lock, and the client acts next
	receives  // payloads, while the lock is held
	committed // holds no lock any more
	pauses    // after its transaction was ended
	published
	ended // the session of a frozen process, by a timeout
)

var phases = [...]string{
	starts: "starts", waitsForRow: "waits for its job's row", hasRow: "has its job's row",
	waitsToDispatch: "waits for the lock of dispatching", thinks: "has the lock of dispatching and decides",
	receives: "receives payloads under the lock", committed: "has committed", pauses: "pauses",
	published: "has published", ended: "has lost its session",
}

// client reports whether the client acts next, in an open transaction.
func (p phase) client() bool { return p == hasRow || p == thinks }

func (p phase) waits() bool { return p == waitsForRow || p == waitsToDispatch }

func (p phase) holdsRow() bool { return p >= hasRow && p <= receives }

func (p phase) holdsDispatch() bool { return p == thinks || p == receives }

type process struct {
	phase phase
	since uint8 // seconds in this phase
}

// state is comparable.
type state struct {
	processes [most]process
	published [2]bool // the jobs
	frozen    bool
	age       uint8 // seconds since the freeze
}

func jobOf(process int) int { return process % 2 }

type model struct {
	limits Limits
	out    func(who int, what string, to state)
}

func (m *model) alive(s *state, i int) bool { return !s.frozen || i >= m.limits.Frozen }

// steps takes every step that s allows.
func (m *model) steps(s state) {
	if !s.frozen && m.limits.Frozen > 0 {
		next := s
		next.frozen = true
		m.out(-1, "the node freezes", next)
	}
	urgent := false
	for i := range m.limits.Processes {
		urgent = m.act(s, i) || urgent
	}
	if !urgent && s.frozen && s.age <= Within {
		m.second(s)
	}
}

// act takes a step of a process or its session that takes no time.
func (m *model) act(s state, i int) bool {
	p := s.processes[i]
	to := p.phase + 1
	switch p.phase {
	case waitsForRow:
		if s.anyHolds(func(j int, q phase) bool { return jobOf(j) == jobOf(i) && q.holdsRow() }) {
			return false
		}
	case waitsToDispatch:
		if s.anyHolds(func(_ int, q phase) bool { return q.holdsDispatch() }) {
			return false
		}
	case starts, hasRow, receives, committed:
		if !m.alive(&s, i) {
			return false
		}
	case thinks:
		if !m.alive(&s, i) {
			return false
		}
		if !m.limits.PayloadsUnderLock {
			to = committed
		}
	case pauses, published, ended:
		return false
	}
	if p.phase == committed {
		s.published[jobOf(i)] = true
		to = published
	}
	s.processes[i] = process{phase: to}
	m.out(i, phases[to], s)
	return true
}

func (s *state) anyHolds(holds func(i int, p phase) bool) bool {
	for i, p := range s.processes {
		if holds(i, p.phase) {
			return true
		}
	}
	return false
}

// second lets a second pass, and ends what has taken too long by then.
func (m *model) second(s state) {
	s.age++
	for i := range m.limits.Processes {
		p := &s.processes[i]
		p.since++
		switch l := m.limits; {
		case p.phase == pauses:
			*p = process{phase: starts}
		case p.phase.waits() && p.since == l.Lock, p.phase.client() && p.since == l.Idle,
			p.phase == receives && p.since == l.Sending:
			*p = process{phase: ended}
			if m.alive(&s, i) {
				p.phase = pauses
			}
		}
	}
	m.out(-1, "a second passes", s)
}

// late reports whether a job on which a living process works should be published by now, and is not.
func (m *model) late(s *state) bool {
	for i := range m.limits.Processes {
		if s.age > Within && m.alive(s, i) && !s.published[jobOf(i)] {
			return true
		}
	}
	return false
}
