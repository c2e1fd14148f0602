package protocol

import (
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type promise string

// The promises, as a finding names them.
const (
	kept             promise = ""
	jobsEnd          promise = "an accepted job ends, the API shows how, and answers its commands"
	oneStart         promise = "an attempt starts at most once"
	cancelledForGood promise = "when the API shows CANCELLED, no attempt starts any more"
	deadLetterFirst  promise = "FAILED is published after its dead letter"
	oneContent       promise = "one version of a job has one content"
	onTheDiagram     promise = "a job makes only the transitions of the diagram"
	endsStay         promise = "an end that the API shows stays, unless the client retries"
	notOverruled     promise = "an outcome is never overruled"
	workersDecide    promise = "the worker's database alone decides the outcome of an attempt"
	oneByOne         promise = "attempt n+1 is dispatched only after attempt n has an outcome"
	ownNumbers       promise = "every attempt has a number of its own, one higher than the last"
	oldAreOld        promise = "an outcome of an old attempt changes nothing"
	countsAreRight   promise = "only a failed attempt counts as a retry, and only a lost one as lost"
	commandsOnce     promise = "a command counts once"
	cancelsCount     promise = "a job with a pending cancel ends CANCELLED or COMPLETED"
	livingKeep       promise = "a worker whose heartbeats get through keeps its attempts"
	oneHandler       promise = "no two handlers of a job run at once"
	callbacksCount   promise = "an accepted callback decides a waiting attempt"
	endsAreShown     promise = "the API receives a job's end before it deletes the job"
	deletedForGood   promise = "a deleted job stays deleted"
	circlesEnd       promise = "no events answer each other for ever"
)

// diagram has the allowed transitions, from no row on, with due and dispatch as one. docs/design.md draws it.
var diagram = map[jobstate.Status][]jobstate.Status{
	"": {jobstate.Pending, jobstate.Queued, jobstate.Failed},

	jobstate.Pending:   {jobstate.Queued, jobstate.Cancelled},
	jobstate.Queued:    append([]jobstate.Status{jobstate.Running}, outcomes...),
	jobstate.Running:   outcomes,
	jobstate.Waiting:   outcomes,
	jobstate.Retrying:  {jobstate.Queued, jobstate.Cancelled},
	jobstate.Scheduled: {jobstate.Queued, jobstate.Cancelled}, // after its second loss
	jobstate.Failed:    {jobstate.Pending},                    // by a command
	jobstate.Cancelled: {jobstate.Pending},                    // by a command
}

var outcomes = []jobstate.Status{
	jobstate.Completed, jobstate.Waiting, jobstate.Pending, jobstate.Scheduled, jobstate.Retrying, jobstate.Failed,
	jobstate.Cancelled,
}

// breaks returns the promise that a step breaks.
func breaks(from *state, by step, to *state) promise {
	was, is := from.job, to.job
	r := record(by.number)
	consumedCommand := by.act == consumes && r.topic() == jobCommand
	consumedOutcome := by.act == consumes && r.topic() >= attemptEnded
	switch {
	case was.deleted && !is.deleted:
		return deletedForGood
	case was.status != is.status && !slices.Contains(diagram[was.name()], is.name()),
		was.name().Terminal() && !is.name().Terminal() && !consumedCommand:
		return onTheDiagram
	case consumedOutcome && r.number() != was.attempt && was != is:
		return oldAreOld
	case consumedCommand && r.number() <= was.command && was != is,
		is.name() == jobstate.Cancelled && to.api.retries>>is.command&1 == 1: // by a cancel from before the retry
		return commandsOnce
	case consumedCommand && was != is && !was.name().Terminal() && !is.cancel && is.name() != jobstate.Cancelled &&
		to.api.deletes>>is.command&1 == 0,
		was.cancel && !is.cancel && is.name() != jobstate.Cancelled && is.name() != jobstate.Completed:
		return cancelsCount
	case was.attempt != is.attempt && (is.attempt != was.attempt+1 || to.rows[is.attempt] != row{}):
		return ownNumbers
	case from.api.shown.ended() && to.api.shown != from.api.shown && from.api.retries == 0:
		return endsStay
	}
	for a := range from.rows {
		if o := from.rows[a].outcome; o != none && o != to.rows[a].outcome {
			return notOverruled
		}
	}
	return to.breaks()
}

// breaks returns the promise that a state breaks.
func (s *state) breaks() promise {
	var count [ends + 1]uint8
	name := s.job.name()
	for a := uint8(1); a <= s.job.attempt; a++ {
		o := s.decided(a)
		count[o]++
		if s.rows[a].outcome == none && a < s.job.attempt {
			return oneByOne
		}
		open := a == s.job.attempt && (name.InFlight() || name == jobstate.Waiting)
		if o == completed && !open && (a < s.job.attempt || name != jobstate.Completed) {
			if s.rows[a].outcome == completed {
				return notOverruled
			} else if s.api.taken == 0 { // a cancel may have come before the callback
				return callbacksCount
			}
		}
	}
	o := s.decided(s.job.attempt)
	switch {
	case s.job.attempt > 0 && !name.InFlight() && o == none,
		name == jobstate.Completed && o != completed && s.api.completed>>s.job.attempt&1 == 0,
		name == jobstate.Retrying && o != failed && o != lost,
		name == jobstate.Failed && s.job.attempt > 0 && o != failed && o != lost:
		return workersDecide
	case s.job.retries > count[failed] || s.job.lost > count[lost]:
		return countsAreRight
	}
	for _, w := range s.workers {
		for a := uint8(1); a < attempts && w.life == up; a++ {
			if w.has(a) && s.rows[a].outcome == lost {
				return livingKeep
			}
		}
	}
	return kept
}

// decided returns the outcome of an attempt. The API decides it if the attempt waits, or if a callback came before its
// handler returned.
func (s *state) decided(attempt uint8) outcome {
	o := s.rows[attempt].outcome
	switch {
	case o != waiting && (o != none || s.job.name() != jobstate.Completed):
	case s.api.completed>>attempt&1 == 1:
		return completed
	case s.api.failed>>attempt&1 == 1:
		return failed
	}
	return o
}
