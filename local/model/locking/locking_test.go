package locking

import (
	"strings"
	"testing"
)

// now has the timeouts of shared/pgpool.
var now = Limits{Processes: 3, Frozen: 1, Lock: 3, Idle: 3, Sending: 5}

func with(change func(*Limits)) Limits {
	l := now
	change(&l)
	return l
}

// With the timeouts of shared/pgpool every job is published in time.
func TestEverythingElseGoesOnWhereverANodeFreezes(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Limits{
		"one process of two":                   with(func(l *Limits) { l.Processes = 2 }),
		"one process of three":                 now,
		"two processes of three, of both jobs": with(func(l *Limits) { l.Frozen = 2 }),
		"four processes of six":                with(func(l *Limits) { l.Processes, l.Frozen = 6, 4 }),
		"payloads under the lock, but bounded": with(func(l *Limits) { l.PayloadsUnderLock = true }),
		"five processes of six, and a longer idle timeout": with(func(l *Limits) {
			l.Processes, l.Frozen, l.Lock, l.Idle = 6, 5, 4, 4
		}),
	} {
		walked := Walk(limits)
		if walked.Late != nil {
			t.Errorf("%s: %d s were not enough:\n%s", name, Within, strings.Join(walked.Late, "\n"))
		}
		if t.Logf("%s: %d states, at most %d s", name, walked.States, walked.Slowest); walked.Slowest < int(now.Idle) {
			t.Errorf("%s: no process ever waited for a frozen one: the walk is too small", name)
		}
	}
}

// Each planted defect removes one bound.
func TestWithoutABoundJobsAreLate(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Limits{
		"the timeouts of before":                      with(func(l *Limits) { l.Lock, l.Idle, l.Sending = 10, 30, 0 }),
		"no idle timeout":                             with(func(l *Limits) { l.Idle = 0 }),
		"payloads under the lock, and no TCP timeout": with(func(l *Limits) { l.PayloadsUnderLock, l.Sending = true, 0 }),
		"no lock timeout, and a node with a queue of waiting processes": with(func(l *Limits) {
			l.Processes, l.Frozen, l.Lock, l.Idle = 6, 5, 0, 4
		}),
	} {
		walked := Walk(limits)
		if walked.Late == nil {
			t.Errorf("%s: not found in %d states", name, walked.States)
			continue
		}
		t.Logf("%s:\n%s", name, strings.Join(walked.Late, "\n"))
	}
}
