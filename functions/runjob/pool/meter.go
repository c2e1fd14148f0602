package pool

import "time"

// meter measures how many attempts a second the pool would finish with all slots busy: the attempts that it has
// finished recently, divided by the slot-seconds that it spent. Long attempts that still run count with the time spent
// so far, so that they lower the rate towards zero.
type meter struct {
	runs     int
	starts   int64         // the sum of the starts of running attempts, in nanoseconds since zero
	zero     time.Time     // the origin of starts: the meter's first start
	busy     time.Duration // of all finished attempts
	finished int
	past     []reading // at heartbeats, oldest first
}

type reading struct {
	at       time.Time
	busy     time.Duration
	finished int
}

func (m *meter) start(at time.Time) {
	if m.zero.IsZero() {
		m.zero = at
	}
	m.runs++
	m.starts += int64(at.Sub(m.zero))
}

func (m *meter) finish(started, at time.Time) {
	m.runs--
	m.starts -= int64(started.Sub(m.zero))
	m.busy += at.Sub(started)
	m.finished++
}

// rate returns the rate since the newest reading that is at least a window old, or since the oldest reading.
// Why it is not what the worker did: docs/decisions/dispatch.md#a-workers-rate-is-what-it-could-do
func (m *meter) rate(now time.Time, slots int) float64 {
	busy := m.busy
	if m.runs > 0 {
		busy += time.Duration(int64(m.runs)*int64(now.Sub(m.zero)) - m.starts)
	}
	current := reading{at: now, busy: busy, finished: m.finished}
	for len(m.past) > 1 && now.Sub(m.past[1].at) >= rateWindow {
		m.past = m.past[1:]
	}
	before := reading{}
	if len(m.past) > 0 {
		before = m.past[0]
	}
	m.past = append(m.past, current)
	finished, spent := current.finished-before.finished, current.busy-before.busy
	if finished == 0 {
		return 0
	}
	if spent <= 0 {
		return rateCap
	}
	return min(rateCap, float64(finished)/spent.Seconds()*float64(slots))
}
